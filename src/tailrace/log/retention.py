"""Retention: which of the oldest segments nobody needs.

A segment is needed by a transaction with a record in it, as long as some consumer or pin has not got past that
transaction, and by every transaction that is still active. Segments go from the oldest on, whole, never the newest.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tailrace.log.consumers import Consumers
from tailrace.log.disk import Disk
from tailrace.log.layout import INDEX_SUFFIXES, SEGMENT_SUFFIX, index_path, segment_path, segment_positions
from tailrace.log.transactions import TransactionIndex


@dataclass(frozen=True)
class SegmentEvent:
    """A segment was `started`, `sealed` or `deleted`."""

    what: str
    path: Path


class Retention:
    """Deletes what is no longer needed, for the writer."""

    def __init__(self, path: Path, disk: Disk, consumers: Consumers) -> None:
        self._path = path
        self._disk = disk
        self._consumers = consumers

    def delete(self, active_floor: int, before_us: int) -> list[Path]:
        """Delete segments sealed before `before_us` whose positions are below all that is needed."""
        needed = self.needed_position(active_floor)
        deleted = []
        index = TransactionIndex(self._path)
        for position, following in zip(index.positions, index.positions[1:], strict=False):
            if following > needed or index.header(following).created_us > before_us:
                break
            self._delete_segment(position)
            deleted.append(segment_path(self._path, position))
        return deleted

    def needed_position(self, active_floor: int) -> int:
        """The oldest position that somebody needs; 0 while no consumer has registered."""
        acknowledged = self._consumers.acknowledged()
        if not acknowledged:
            return 0
        after = min([*acknowledged.values(), *self._consumers.pins().values()])
        return min(active_floor, TransactionIndex(self._path).first_position_after(after))

    def holder(self, active_floor: int) -> str:
        """Who holds the oldest segment, in words."""
        acknowledged = self._consumers.acknowledged()
        if not acknowledged:
            return "no consumer has registered"
        name, seq = min({**acknowledged, **self._consumers.pins()}.items(), key=lambda item: item[1])
        if active_floor <= TransactionIndex(self._path).first_position_after(seq):
            return f"a transaction has been active since position {active_floor}"
        return f'"{name}" has read up to transaction {seq}'

    def _delete_segment(self, position: int) -> None:
        # One by one, oldest first, each for good: a crash in between leaves no hole.
        self._disk.unlink(segment_path(self._path, position))
        self._disk.sync_directory(self._path)
        for suffix in INDEX_SUFFIXES:
            self._disk.unlink(index_path(self._path, position, suffix))


def disk_bytes(path: Path) -> int:
    """What the segments and their indexes take."""
    suffixes = (SEGMENT_SUFFIX, *INDEX_SUFFIXES)
    return sum(file.stat().st_size for file in path.iterdir() if file.suffix in suffixes)


def wipe(path: Path, disk: Disk) -> None:
    """Remove all records and what consumers have acknowledged of them; newest first, so that no hole shows."""
    for folder in (path / "consumers", path / "pins"):
        for file in folder.glob("*"):
            disk.unlink(file)
            disk.sync_directory(folder)
    for file in (path / "head", *(segment_path(path, position) for position in reversed(segment_positions(path)))):
        if file.exists():
            disk.unlink(file)
            disk.sync_directory(path)
