"""The first thing the command `signspot` runs: Ctrl-C is answered in order even while the program loads."""

from __future__ import annotations

import sys


def main() -> None:
    """Load the command line and run it."""
    try:
        from signspot.cli.main import main as run
    except KeyboardInterrupt:
        sys.exit(130)
    run()
