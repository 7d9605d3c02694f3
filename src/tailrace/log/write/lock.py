"""One writer: the lock of a log, with the process that holds it for people to read."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

from tailrace.errors import DefiniteError
from tailrace.storage.folder_lock import FolderLock, HeldError


def lock_log(path: Path) -> FolderLock:
    """The lock of the log in this folder. A definite error if another process has it."""
    try:
        return FolderLock(path / "lock", json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
    except HeldError as error:
        message = f"{path} is being written by {_describe(error.note)}"
        raise DefiniteError(message, "stop that process first") from None


def _describe(holder: bytes) -> str:
    try:
        content = json.loads(holder)
        return f"process {content['pid']} on host {content['host']}"
    except (ValueError, KeyError, TypeError):
        return "another process"
