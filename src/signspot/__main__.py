"""The first thing the command `signspot` runs: signals are answered in order even while the program loads."""

from __future__ import annotations

import sys

from signspot import interrupts


def main() -> None:
    """Load the command line and run it."""
    interrupts.listen()
    try:
        from signspot.cli.main import main as run

        code = run()
    except KeyboardInterrupt:  # while the program loads, or after its last word
        code = interrupts.exit_code()
    if interrupts.is_asked():
        interrupts.leave(code)
    interrupts.end_at_once()
    sys.exit(code)


# `python -m signspot` is the command `signspot`.


if __name__ == "__main__":
    main()
