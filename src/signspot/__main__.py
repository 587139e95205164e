"""`python -m signspot` is the command `signspot`."""

from signspot.cli.entry import main

if __name__ == "__main__":
    main()
