"""Files that are replaced as a whole: a reader finds the old content or the new one, also after a power cut."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tailrace.failpoint import failpoint

Bytes = bytes | bytearray | memoryview

PRIVATE = 0o600
"""Only the owner may read what we write: it has rows, or leads to them."""


class Disk:
    """The calls that replace a file, in one place so that a test can make each of them fail."""

    def create(self, path: Path) -> int:
        """A descriptor to an empty file for reading and writing; what was there is gone."""
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, PRIVATE)

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
    descriptor = disk.create(draft)
    try:
        disk.write(descriptor, [content], 0)
        disk.sync(descriptor)
    finally:
        os.close(descriptor)
    if point:
        failpoint(point)
    disk.replace(draft, path)
    disk.sync_directory(path.parent)


def sync(path: Path) -> None:
    """What a file holds, or which names a folder has, is on disk when this returns, whoever wrote it."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
