"""What a process that a benchmark starts beside itself needs."""

from __future__ import annotations

import sys
import threading


def end_of_input() -> threading.Event:
    """Set when whoever started this process closes its input, or is gone."""
    ended = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    return ended
