"""Where the command `tailrace` begins. Signals are watched before anything large is imported: Ctrl-C in the first
moments ends the command as it does later."""

from __future__ import annotations

import os
import sys

from tailrace import ending


def main() -> None:
    """Entry point."""
    ending.watch()
    from tailrace.cli.commands import app

    try:
        app()
    finally:
        try:
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


if __name__ == "__main__":
    main()
