"""Whether a table can follow the log from where it stands. What is wrong has the table copied again."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.errors import ResyncError
from tailrace.lake.stamp import Stamp
from tailrace.log.reader import LogReader
from tailrace.model.cut import PublishedCut
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId
from tailrace.source.door.codec import Codec


@dataclass(frozen=True)
class Continuation:
    """What the log has, seen from one table."""

    codec: type[Codec]
    reader: LogReader
    table: TableId

    def require_same_history(self, seq: int, position: SourcePosition) -> None:
        """The transaction that a table stands at, or a cut that vouches for it, must be the one that the log has under
        that number. It is not where another machine has gone on without this log, and the lake came back to it."""
        if not self.reader.oldest_seq <= seq <= self.reader.head.seq:
            return
        logged = self.reader.position_of(seq)
        if logged > position:
            at, there = self.codec.format(position), self.codec.format(logged)
            raise ResyncError.of(self.table, f"it is at {at}, where the log has {there}: it is another log")

    def seq_of(self, seq: int, ordinal: int) -> int:
        """The transaction of the log that has everything up to this ordinal, for one that had this number: the same,
        unless a new log was begun since, which has given others."""
        begin = self.reader.oldest_seq - 1
        if seq >= begin or ordinal < self.reader.position_of(begin).ordinal:
            return seq
        return max(begin, self.reader.seq_at(ordinal))

    def seq_of_stamp(self, stamp: Stamp) -> int:
        """The same for the transaction that a table has last. One that a new log does not have was taken back: by a
        server that was set back, or a standby that took over without it."""
        seq, position = stamp.seq or 0, stamp.position
        found = self.seq_of(seq, position.ordinal)
        if found != seq:
            logged = self.reader.position_of(found)
            if (logged.ordinal, logged.time_us) != (position.ordinal, position.time_us):
                at = self.codec.format(position)
                raise ResyncError.of(self.table, f"it is at {at}, where the source no longer has a transaction")
        return found

    def seq_of_cut(self, cut: PublishedCut) -> int:
        """The same for a table that a cut vouches for. What commits right at the cut's position is in the table's own
        stamp, if it concerns the table; or it is what the log begins after."""
        begin = self.reader.oldest_seq - 1
        if cut.seq < begin and self.reader.position_of(begin) == cut.position:
            return begin
        return self.seq_of(cut.seq, cut.position.ordinal - 1)

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
