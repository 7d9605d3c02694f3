"""The published cuts of a lake: one line each in `cuts.jsonl`, oldest first.

A line is appended and fsynced after every table of a batch has been published, so a cut in the
file is a cut in the lake. A line that a crash cut short is ignored by readers and overwritten
by the next append.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tailrace.errors import DefiniteError
from tailrace.lake.files import sync
from tailrace.model.cut import PublishedCut

RECENT_BYTES = 1 << 20
"""Longer than any line."""


class Cuts:
    """Read by any process, appended to by the one connector of the lake."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def size_bytes(self) -> int:
        """Another number when there is another cut."""
        return self._path.stat().st_size if self._path.exists() else 0

    def all(self) -> list[PublishedCut]:
        """Every cut, oldest first."""
        return self._parse(0)

    def newest(self, wanted: Callable[[PublishedCut], bool] = lambda cut: True) -> PublishedCut | None:
        """The newest cut that is `wanted`; looks at the end of the file first."""
        for last_bytes in (RECENT_BYTES, 0):
            found = next((cut for cut in reversed(self._parse(last_bytes)) if wanted(cut)), None)
            if found is not None:
                return found
        return None

    def _parse(self, last_bytes: int) -> list[PublishedCut]:
        """The whole lines of the file, or of its last bytes."""
        try:
            with self._path.open("rb") as file:
                start = max(0, file.seek(0, os.SEEK_END) - last_bytes) if last_bytes else 0
                file.seek(start)
                content = file.read()
        except FileNotFoundError:
            return []
        begin = content.find(b"\n") + 1 if start else 0
        whole = content[begin : content.rfind(b"\n") + 1]
        try:
            return [PublishedCut.from_json(line) for line in whole.decode().splitlines()]
        except (ValueError, KeyError, TypeError):
            raise DefiniteError(f"{self._path} is damaged", "restore it from a backup, or start a new lake") from None

    def append(self, cut: PublishedCut) -> None:
        """Durable when this returns."""
        is_new = not self._path.exists()
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            size = os.fstat(descriptor).st_size
            start = max(0, size - RECENT_BYTES)
            end = start + os.pread(descriptor, size - start, start).rfind(b"\n") + 1
            os.ftruncate(descriptor, end)
            os.pwrite(descriptor, f"{cut.to_json()}\n".encode(), end)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if is_new:
            sync(self._path.parent)
