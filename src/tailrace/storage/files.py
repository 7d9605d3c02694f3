"""Local files that are replaced as a whole, JSON among them, and files of lines that grow at their end.

A reader finds the old content or the new one, also after a power cut. A line that a crash cut short is no line to a
reader, and the next one takes its place.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tailrace.errors import DefiniteError
from tailrace.failpoint import failpoint

Bytes = bytes | bytearray | memoryview

PRIVATE = 0o600
"""Only the owner may read what we write: it has rows, or leads to them."""
LINE_BYTES_MAX = 1 << 20
"""Longer than any line that is appended."""


class Disk:
    """The calls that replace a file, in one place so that a test can make each of them fail."""

    mode = PRIVATE

    def create(self, path: Path) -> int:
        """A descriptor to an empty file for reading and writing; what was there is gone."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, self.mode)

    def write(self, descriptor: int, parts: Sequence[Bytes], offset: int) -> None:
        """Writes all or raises."""
        for part in parts:
            rest = memoryview(part).cast("B")
            while rest:
                written = os.pwrite(descriptor, rest, offset)
                offset += written
                rest = rest[written:]

    def sync(self, descriptor: int) -> None:
        """What the file holds is on the disk when this returns."""
        os.fsync(descriptor)

    def replace(self, source: Path, target: Path) -> None:
        os.replace(source, target)

    def sync_directory(self, path: Path) -> None:
        """Names made, changed or removed in this directory are on the disk when this returns."""
        sync(path)


DISK = Disk()


def replace(path: Path, content: bytes, draft: Path | None = None, *, disk: Disk = DISK, point: str = "") -> None:
    """Durable when this returns. A crash leaves the old file or the new one, and perhaps the draft: the next call
    writes that again. `point` names the failpoint between the two."""
    draft = draft or path.with_name(f"{path.name}.new")
    write(draft, content, disk=disk)
    if point:
        failpoint(point)
    disk.replace(draft, path)
    disk.sync_directory(path.parent)


def write(path: Path, content: bytes, *, disk: Disk = DISK) -> None:
    """The content of the file is durable when this returns; its name is not yet."""
    descriptor = disk.create(path)
    try:
        disk.write(descriptor, [content], 0)
        disk.sync(descriptor)
    finally:
        os.close(descriptor)


def sync(path: Path) -> None:
    """What a file holds, or which names a folder has, is on disk when this returns, whoever wrote it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, content: Any) -> None:
    """Durable when this returns. Only the owner may read it."""
    replace(path, json.dumps(content, indent=2).encode(), point="file.draft")


def read_json(path: Path) -> Any:
    """None when there is no such file. A definite error when it is damaged."""
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        raise DefiniteError(f"{path} is damaged", "restore it from a backup") from None


def append_line(path: Path, line: str) -> None:
    """Durable when this returns. Only the owner may read it. One process at a time."""
    is_new = not path.exists()
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, PRIVATE)
    try:
        size = os.fstat(descriptor).st_size
        start = max(0, size - LINE_BYTES_MAX)
        end = start + os.pread(descriptor, size - start, start).rfind(b"\n") + 1
        os.ftruncate(descriptor, end)
        content = f"{line}\n".encode()
        if os.pwrite(descriptor, content, end) < len(content):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    if is_new:
        sync(path.parent)
