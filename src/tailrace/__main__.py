"""`python -m tailrace` is the command `tailrace`."""

from __future__ import annotations

from tailrace.cli.main import main

if __name__ == "__main__":
    main()
