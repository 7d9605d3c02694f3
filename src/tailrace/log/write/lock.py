"""One writer: an advisory lock that the kernel drops when its holder dies, however it dies."""

from __future__ import annotations

import fcntl
import json
import os
import socket
from contextlib import suppress
from pathlib import Path

from tailrace.errors import DefiniteError
from tailrace.files import PRIVATE


class WriterLock:
    """Held from construction until `release` or the end of the process."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.pread(self._descriptor, 4096, 0)
            os.close(self._descriptor)
            raise DefiniteError(f"{path} is being written by {_describe(holder)}", "stop that process first") from None
        # For people only: on a full disk the lock holds without it.
        with suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode(), 0)

    def release(self) -> None:
        # A child that was forked meanwhile has the descriptor too and would keep holding the lock.
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)


def _describe(holder: bytes) -> str:
    try:
        content = json.loads(holder)
        return f"process {content['pid']} on host {content['host']}"
    except (ValueError, KeyError, TypeError):
        return "another process"
