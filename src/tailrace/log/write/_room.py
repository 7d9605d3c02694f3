"""Room: whether the log may grow, and what is deleted where it may not.

A flush is refused at the quota until retention has freed space. It is taken anyway where waiting would never end: when
the log is empty, or when consumers have read everything and no pin or active transaction holds anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tailrace.log.ledger.ledger import Ledger
from tailrace.log.write._options import LogBlockedError, LogHeldError
from tailrace.log.write._segments import Segments
from tailrace.log.write._unsynced import Unsynced
from tailrace.log.write.retention import Need, SegmentRetention

_OVERHEAD_BYTES = 4096
"""A frame's metadata and the header of a segment, without details, take less than this."""


class Room:
    """What the segments of one log take and may take."""

    def __init__(self, segments: Segments, ledger: Ledger, quota_bytes: int | None) -> None:
        self._segments = segments
        self._ledger = ledger
        self._quota_bytes = quota_bytes

    def is_there_for(self, unsynced: Unsynced) -> bool:
        if self._quota_bytes is None:
            return True
        durable = self._segments.open.durable
        # The next segment's header has these two details, as hexadecimal digits.
        header_bytes = 2 * (len(durable.received.detail) + len(durable.last_commit.detail))
        more_bytes = unsynced.bytes_waiting + unsynced.index_bytes + header_bytes + _OVERHEAD_BYTES
        return self._segments.bytes + more_bytes <= self._quota_bytes

    def require(self, unsynced: Unsynced) -> None:
        """Make room if there is none. LogBlockedError where that takes someone else."""
        if self.is_there_for(unsynced):
            return
        segments = self._segments
        retention = SegmentRetention(segments.path, segments.disk)
        # A transaction whose end is about to be written holds nothing any more.
        holder = retention.holder(self._need([self._ledger.base.floor]))
        self._free(retention, 0)
        # Where nothing was held and retention has freed all it could, waiting would not help.
        reason = holder.reason if holder else retention.hindrance
        is_all_empty = segments.sealed_bytes == 0 and segments.open.is_empty
        if reason and not self.is_there_for(unsynced) and not is_all_empty:
            message = f"the log in {segments.path} has reached its quota of {self._quota_bytes} bytes: {reason}"
            error = LogHeldError if holder and holder.is_active else LogBlockedError
            raise error(message, "let it continue, or raise the quota")

    def free(self, keep_us: int) -> list[Path]:
        """Delete segments that no one needs and that were sealed at least `keep_us` ago."""
        return self._free(SegmentRetention(self._segments.path, self._segments.disk), keep_us)

    def _free(self, retention: SegmentRetention, keep_us: int) -> list[Path]:
        return self._segments.delete(retention, self._need(), keep_us)

    def _need(self, floors: Sequence[int | None] = ()) -> Need:
        """What must not be deleted, whoever has acknowledged it."""
        segment = self._segments.open
        floors = floors or (self._ledger.base.floor, segment.durable.floor, segment.index.waiting_from)
        floor = min(floor for floor in floors if floor is not None)
        indexed = segment.header.base.seq + segment.index.rows
        return Need(indexed, floor if floor < segment.durable.position else None, segment.header.base.position)
