"""The segments of a log on its writer's side: the open one, and the sealed ones before it.

A roll is planned when the open segment is full, and takes positions from then on; it is finished when the disk has room
for the next segment. Whole segments are deleted, from the oldest on.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from tailrace.log.files.disk import LogDisk
from tailrace.log.index.head import Head, HeadWriter
from tailrace.log.ledger.ledger import Base, Ledger
from tailrace.log.write._next_segment import NextSegment
from tailrace.log.write._open_segment import OpenSegment
from tailrace.log.write._options import LogOptions
from tailrace.log.write.recovery import Recovered
from tailrace.log.write.retention import Need, SegmentRetention, disk_bytes


class Segments:
    """Continues with what was recovered, or begins the first segment of a new log. One thread."""

    def __init__(
        self,
        path: Path,
        disk: LogDisk,
        options: LogOptions,
        clock: Callable[[], int],
        log: int,
        begin: Recovered | Base,
    ) -> None:
        self.path = path
        self.disk = disk
        self._options = options
        self._clock = clock
        self._next: NextSegment | None = None
        with ExitStack() as on_error:
            if isinstance(begin, Base):
                self.open = self._begin(NextSegment.first(begin, clock()))
            else:
                self.open = OpenSegment.continued(begin, path, disk, options.compression)
            on_error.callback(self.open.close)
            self.sealed_bytes = disk_bytes(path) - self.open.bytes
            self._head = HeadWriter(disk, path, log, clock)
            on_error.callback(self._head.close)
            self._show_head()
            on_error.pop_all()

    @property
    def head(self) -> Head:
        """The end of what is durable."""
        return self._head.head

    @property
    def is_rolling(self) -> bool:
        """The next segment is planned and could not be made yet: the open one takes nothing more."""
        return self._next is not None

    @property
    def bytes(self) -> int:
        """On disk, indexes included."""
        return self.sealed_bytes + self.open.bytes

    def is_due_to_roll(self) -> bool:
        if self.is_rolling or self.open.is_empty:
            return False
        options = self._options
        # Only sealed segments can be deleted, so the open one must not fill the quota.
        bytes_max = min(options.segment_bytes_max, (options.quota_bytes or 1 << 62) // 4)
        age_us = self._clock() - self.open.header.created_us
        # A clock that was set back would keep the segment open until it has caught up.
        is_old = age_us < 0 or age_us >= options.segment_seconds_max * 1e6
        return self.open.size >= bytes_max or is_old

    def roll(self, ledger: Ledger) -> None:
        """Decide what the next segment starts with, whose positions are taken from here on, and start it."""
        self._next = NextSegment.following(ledger, self._clock())
        self.finish_roll()

    def finish_roll(self) -> None:
        """Seal the open segment and start the next, if that is planned. May fail and be tried again."""
        if self._next is None:
            return
        sealed = self.open
        sealed.seal()
        self.open = self._begin(self._next)
        self._next = None
        self.sealed_bytes += sealed.bytes
        sealed.close()
        self.open.index.drain()
        self._show_head()

    def show(self) -> None:
        """Let readers see all that is durable."""
        self.open.show()
        if not self._head.is_shown(self.open.durable.position):
            self._show_head()

    def delete(self, retention: SegmentRetention, need: Need, keep_us: int) -> list[Path]:
        """Delete the oldest segments as far as retention allows."""
        deleted = retention.delete(need, keep_us, self._clock())
        self.sealed_bytes = disk_bytes(self.path) - self.open.bytes
        return deleted

    def close(self) -> None:
        self.open.close()
        self._head.close()

    def _begin(self, following: NextSegment) -> OpenSegment:
        return OpenSegment.begin(following, self.path, self.disk, self._options.compression)

    def _show_head(self) -> None:
        base = self.open.durable
        self._head.show(base.seq, base.received.ordinal, base.position, self.open.header.base.position)
