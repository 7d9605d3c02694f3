"""One process at a time works in a folder: a lock that the kernel drops when its holder dies, however it dies.

Of all who have the lock of one folder, one after another, only one can be alive. So they share a name (`session_of`),
and a place elsewhere that knows them by it need not wait until one that died is forgotten.
"""

from __future__ import annotations

import fcntl
import os
import time
import uuid
from contextlib import suppress
from pathlib import Path

from tailrace.errors import DefiniteError
from tailrace.storage.files import PRIVATE, read_json, write_json

NOTE_BYTES_MAX = 4096
LOOK_SECONDS = 0.3
"""Someone who only looks who has the lock has it meanwhile: for a moment, and several may follow each other."""
POLL_SECONDS = 0.001
SESSION = "session.json"
BOOT = Path("/proc/sys/kernel/random/boot_id")


class HeldError(Exception):
    """Another process has the lock."""

    def __init__(self, note: bytes) -> None:
        super().__init__(note)
        self.note = note
        """What that process wrote into the file."""


class FolderLock:
    """Held from construction until `close` or the end of the process. A `HeldError` if another process has it."""

    def __init__(self, file: Path, note: str = "") -> None:
        self._descriptor = os.open(file, os.O_RDWR | os.O_CREAT, PRIVATE)
        try:
            self._wait_for_lookers()
        except BaseException:
            os.close(self._descriptor)
            raise
        # For people only: on a full disk the lock holds without it.
        with suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, note.encode(), 0)

    def _wait_for_lookers(self) -> None:
        deadline = time.monotonic() + LOOK_SECONDS
        while True:
            try:
                return _take(self._descriptor, fcntl.LOCK_EX)
            except HeldError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(POLL_SECONDS)

    def close(self) -> None:
        # A child that was forked meanwhile has the descriptor too and would keep holding the lock.
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)


def note_of_holder(file: Path) -> bytes | None:
    """What the process that has the lock wrote into the file; None if no process has it."""
    try:
        descriptor = os.open(file, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        _take(descriptor, fcntl.LOCK_SH)
    except HeldError as error:
        return error.note
    finally:
        os.close(descriptor)
    return None


def session_of(folder: Path) -> str:
    """A name that all have who have the lock of this folder, one after another, and no one else. It is kept in the
    folder, which has another one after the machine was started again, and as a copy in another place or on another
    machine. Where the machine does not say when it was started, each time another one."""
    try:
        boot = BOOT.read_text().strip()
    except OSError:
        return str(uuid.uuid4())
    path, found = folder.resolve(), folder.stat()
    # Containers of one machine may each have another folder under one path.
    own = {"boot": boot, "folder": str(path), "device": found.st_dev, "inode": found.st_ino}
    kept = None
    with suppress(DefiniteError):
        kept = read_json(path / SESSION)
    if not isinstance(kept, dict) or {name: kept.get(name) for name in own} != own or "session" not in kept:
        kept = {"session": str(uuid.uuid4()), **own}
        write_json(path / SESSION, kept)
    return str(kept["session"])


def _take(descriptor: int, how: int) -> None:
    try:
        fcntl.flock(descriptor, how | fcntl.LOCK_NB)
    except BlockingIOError:
        raise HeldError(os.pread(descriptor, NOTE_BYTES_MAX, 0)) from None
