"""The few calls the log makes on its disk, in one place so that tests can make each of them fail.

Nothing here decides anything. Where `write` raises, the caller knows how far the file was good before.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path

from tailrace.storage import files
from tailrace.storage.files import PRIVATE, Bytes

_SYNC_FILE_RANGE = getattr(ctypes.CDLL(None), "sync_file_range", None)
"""Linux has it, Python does not call it."""
_SYNC_FILE_RANGE_WRITE = 2
if _SYNC_FILE_RANGE is not None:
    _SYNC_FILE_RANGE.argtypes = [ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint]

PRIVATE_FOLDER = 0o700
"""Whoever may read the log may read every row that changed."""


class LogDisk(files.Disk):
    """The real disk."""

    def open(self, path: Path) -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE)

    def truncate(self, descriptor: int, size: int) -> None:
        os.ftruncate(descriptor, size)

    def sync(self, descriptor: int) -> None:
        """The file's bytes and its length are on the disk when this returns."""
        os.fdatasync(descriptor)

    def start_write_out(self, descriptor: int, offset: int, length: int) -> None:
        """Have the kernel begin to write these bytes to the disk. Only a hint: nothing is durable before `sync`."""
        if _SYNC_FILE_RANGE is not None:
            _SYNC_FILE_RANGE(descriptor, offset, length, _SYNC_FILE_RANGE_WRITE)

    def unlink(self, path: Path) -> None:
        os.unlink(path)

    def make_directory(self, path: Path) -> None:
        """The directory and all above it that are missing, for good."""
        missing = [each for each in (path, *path.parents) if not each.exists()]
        path.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        for each in reversed(missing):
            self.sync_directory(each.parent)

    def publish(self, path: Path, content: bytes) -> None:
        """Replace a small file as a whole: after a crash it is the old one or the new one."""
        files.replace(path, content, path.with_name(f"{path.name}.tmp"), disk=self)


class AppendFile:
    """A file that grows at its end. A failed write leaves it as it was, or is undone by the next one."""

    def __init__(self, disk: LogDisk, path: Path, size: int = 0) -> None:
        self.path = path
        self.size = size
        self._disk = disk
        self._descriptor = disk.open(path)
        self._staged = bytearray()
        self._torn = False

    def stage(self, content: bytes) -> None:
        """Remember bytes for the next `drain`."""
        self._staged += content

    def drain(self) -> None:
        """Write what is staged; on an error it stays staged."""
        if self._staged:
            self.append([bytes(self._staged)])
            self._staged.clear()

    def append(self, parts: Sequence[Bytes]) -> None:
        """Write at the end. After an error the file is still `size` bytes long for everyone who asks."""
        self.mend()
        self._torn = True
        try:
            self._disk.write(self._descriptor, parts, self.size)
        except OSError:
            self.mend()
            raise
        self._torn = False
        self.size += sum(len(part) for part in parts)

    def rewind(self, size: int) -> None:
        """Drop what lies after `size`: it was written but could not be made durable."""
        self.size = size
        self._torn = True
        self.mend()

    def mend(self) -> None:
        if self._torn:
            self._disk.truncate(self._descriptor, self.size)
            self._torn = False

    def start_write_out(self, start: int) -> None:
        """Have the disk begin with what lies after `start`."""
        self._disk.start_write_out(self._descriptor, start, self.size - start)

    def sync(self) -> None:
        self._disk.sync(self._descriptor)

    def overwrite(self, content: bytes) -> None:
        """Write at the start of the file."""
        self._disk.write(self._descriptor, [content], 0)

    def close(self) -> None:
        os.close(self._descriptor)
