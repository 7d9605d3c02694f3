"""Retention: which of the oldest segments are no longer needed.

A segment is needed while a consumer or a pin has not got past every transaction with a record in it, and while such a
transaction is still active. Whole segments are deleted, from the oldest on, never the newest.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tailrace.log.consumers import Consumers
from tailrace.log.files.disk import LogDisk
from tailrace.log.files.layout import (
    INDEX_SUFFIXES,
    SEGMENT_SUFFIX,
    Manifest,
    create,
    end_wiping,
    index_path,
    segment_path,
    segment_positions,
)
from tailrace.log.index.transactions import TransactionIndex


@dataclass(frozen=True)
class SegmentHolder:
    """Who keeps the oldest of what is there from being deleted."""

    reason: str
    is_active: bool = False
    """It is a transaction that has not ended."""


@dataclass(frozen=True)
class Need:
    """What the writer itself needs."""

    seq: int
    """The newest finished transaction in the index."""
    active_floor: int | None
    """Where the oldest active transaction began."""
    segment: int
    """The segment that is being written."""


class SegmentRetention:
    """Deletes what is no longer needed, for the writer."""

    def __init__(self, path: Path, disk: LogDisk) -> None:
        self._path = path
        self._disk = disk
        self._consumers = Consumers(path, disk)
        self._index = TransactionIndex(path)
        self._first_positions: dict[int, int] = {}
        self.hindrance: str | None = None
        """Why the last `delete` ended before it was done."""

    def delete(self, need: Need, keep_us: int, now_us: int) -> list[Path]:
        """Delete segments sealed at least `keep_us` ago whose positions are below all that is needed.

        DefiniteError when the index cannot tell what is needed; then nothing is deleted.
        """
        deleted = []
        for position, following in pairwise(list(self._index.positions)):
            # A clock that was set back must not keep a segment that was sealed in what is now the future.
            sealed_us = min(self._index.header(following).created_us, now_us)
            if following > need.segment or now_us - sealed_us < keep_us or not self._delete_unneeded(position, need):
                break
            deleted.append(segment_path(self._path, position))
        return deleted

    def _delete_unneeded(self, position: int, need: Need) -> bool:
        """Delete the oldest segment unless it is needed, or a consumer says so just now, or the disk fails."""
        try:
            with self._consumers.unchanged():
                if self._index.positions[1] > self.needed_position(need):
                    return False
                self._delete_segment(position)
        except OSError as error:
            self.hindrance = f"it cannot be freed just now: {error.strerror or error}"
            return False
        self._index.positions.remove(position)
        return True

    def needed_position(self, need: Need) -> int:
        """The oldest position that is needed; 0 while no consumer has registered."""
        acknowledged = self._consumers.acknowledged()
        if not acknowledged:
            return 0
        after = min([*acknowledged.values(), *self._consumers.pins().values()])
        floor = self._first_position_after(after, need.seq)
        return floor if need.active_floor is None else min(floor, need.active_floor)

    def holder(self, need: Need) -> SegmentHolder | None:
        """Who holds the oldest of what is there; None when waiting would free nothing."""
        acknowledged = self._consumers.acknowledged()
        if not acknowledged:
            return SegmentHolder("no consumer has registered")
        holders = [*acknowledged.items(), *self._consumers.pins().items()]
        name, seq = min(holders, key=lambda holder: holder[1])
        floor = self._first_position_after(seq, need.seq)
        if need.active_floor is not None and need.active_floor <= floor:
            return SegmentHolder(f"a transaction has been active since position {need.active_floor}", is_active=True)
        return SegmentHolder(f'"{name}" has read up to transaction {seq}') if seq < need.seq else None

    def _first_position_after(self, after: int, upto: int) -> int:
        if after not in self._first_positions:
            self._first_positions[after] = self._index.first_position_between(after, upto)
        return self._first_positions[after]

    def _delete_segment(self, position: int) -> None:
        # One by one, oldest first, each for good: a crash in between leaves no hole.
        self._disk.unlink(segment_path(self._path, position))
        self._disk.sync_directory(self._path)
        for suffix in INDEX_SUFFIXES:
            # One that cannot be removed now is swept away when the log is opened.
            with suppress(OSError):
                self._disk.unlink(index_path(self._path, position, suffix))


def disk_bytes(path: Path) -> int:
    """What the segments and their indexes take."""
    suffixes = (SEGMENT_SUFFIX, *INDEX_SUFFIXES)
    return sum(file.stat().st_size for file in path.iterdir() if file.suffix in suffixes)


def wipe(path: Path, manifest: Manifest, disk: LogDisk) -> Manifest:
    """Remove all records and what consumers have acknowledged of them; the log has another id afterwards.

    The new id comes first, together with a mark that the rest is to go: a crash at any point is finished by the next
    writer, and no reader takes what is left for the new log.
    """
    if not manifest.wiping:
        manifest = create(path, manifest.identity, disk, wiping=True)
    for folder in (path / "consumers", path / "pins"):
        for file in folder.glob("*"):
            disk.unlink(file)
    for file in (path / "head", *(segment_path(path, position) for position in segment_positions(path))):
        if file.exists():
            disk.unlink(file)
    for folder in (path, path / "consumers", path / "pins"):
        if folder.exists():
            disk.sync_directory(folder)
    return end_wiping(path, manifest, disk)
