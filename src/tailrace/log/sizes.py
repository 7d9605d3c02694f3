"""How much a log takes on disk, for those who ask again and again."""

from __future__ import annotations

import os
from pathlib import Path

from tailrace.log.files.layout import INDEX_SUFFIXES, SEGMENT_SUFFIX

_SUFFIXES = (SEGMENT_SUFFIX, *INDEX_SUFFIXES)
_STILL_WRITTEN = 2
"""Segments at the end that may grow: the open one, and the one before it until its index is whole."""


class LogSize:
    """Of one log. Files of segments that no one writes any more are looked at once. One thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sealed: dict[str, int] = {}

    def bytes(self) -> int:
        """0 where there is no log."""
        try:
            names = os.listdir(self._path)
        except FileNotFoundError:
            return 0
        files = {name: name.partition(".")[0] for name in names if name.endswith(_SUFFIXES)}
        written = sorted(set(files.values()))[-_STILL_WRITTEN:]
        sealed = {name for name, segment in files.items() if segment not in written}
        self._sealed = {
            name: self._sealed[name] if name in self._sealed else _size(self._path / name) for name in sealed
        }
        return sum(self._sealed.values()) + sum(_size(self._path / name) for name in names if name not in sealed)


def _size(path: Path) -> int:
    """Of a file, or of the files in a folder; 0 for what is deleted while we look."""
    try:
        return sum(map(_size, path.iterdir())) if path.is_dir() else path.stat().st_size
    except FileNotFoundError:
        return 0
