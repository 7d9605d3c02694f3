"""The fork server of captures: what it loads, and how a fork becomes a capture."""

from __future__ import annotations

import json
import os
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from tailrace.connector.start import capture_process
from tailrace.forks.server import serve


def preload(module: str) -> None:
    """A module that cannot be imported here is left to the capture, which can say so."""
    with suppress(Exception):
        import_module(module)


def become_capture(streams: list[int]) -> int:
    """Take standard input, output and error, be where the connector is, and capture."""
    # A session of its own keeps the terminal's Ctrl-C away: capture ends after the last batch, not before.
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # Its command line is that of the fork server. Where there is no such file, names are a nicety.
    with suppress(OSError):
        Path("/proc/self/comm").write_text(capture_process.NAME)
    surroundings = sys.stdin.readline()
    if not surroundings.endswith("\n"):
        return 1
    _take_over(json.loads(surroundings))
    return capture_process.main()


def _take_over(surroundings: dict[str, Any]) -> None:
    os.chdir(surroundings["folder"])
    os.environ.clear()
    os.environ.update(surroundings["environment"])
    sys.path[:] = surroundings["path"]


if __name__ == "__main__":
    serve(preload, become_capture, kills_forks=False)
