"""Whether a table can follow the log from where it stands. What is wrong has the table copied again."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.errors import ResyncError
from tailrace.lake.stamp import Stamp
from tailrace.log.reader import LogReader
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId
from tailrace.source.door.codec import Codec


@dataclass(frozen=True)
class Continuation:
    """What the log has, seen from one table."""

    codec: type[Codec]
    reader: LogReader
    table: TableId

    def require_same_history(self, stamp: Stamp) -> None:
        """The transaction that a table stands at must be the one that the log has under that number."""
        seq = stamp.seq or 0
        if not self.reader.oldest_seq <= seq <= self.reader.head.seq:
            return
        logged = self.reader.position_of(seq)
        if logged > stamp.position:
            at, there = self.codec.format(stamp.position), self.codec.format(logged)
            raise ResyncError.of(self.table, f"it is at {at}, where the log has {there}: it is another log")

    def seq_of(self, seq: int, ordinal: int) -> int:
        """The transaction of the log that has everything up to this ordinal, for one that had this number: the same,
        unless a new log was begun since, which has given others."""
        begin = self.reader.oldest_seq - 1
        if seq >= begin or ordinal < self.reader.position_of(begin).ordinal:
            return seq
        return max(begin, self.reader.seq_at(ordinal))

    def require_rest(self, stamp: Stamp, seq: int, known: int = 0) -> None:
        """The log must have every transaction after `seq`. `known` is a later one that the log must have had."""
        last = max(seq, known)
        if last > self.reader.head.seq:
            reason = f"it is at transaction {last}, but the log ends at {self.reader.head.seq}"
            raise ResyncError.of(self.table, reason)
        if seq < self.reader.oldest_seq - 1:
            raise self.gap(stamp.position)

    def gap(self, position: SourcePosition) -> ResyncError:
        text = self.codec.format(position)
        return ResyncError.of(self.table, f"the log no longer has what follows {text}")
