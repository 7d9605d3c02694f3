"""Where a table of the lake stands when a run first meets it, and the live table that continues from there.

There is no checkpoint. A table's newest whole version says how far the table is, and a cut may say more: it vouches for
a table that had nothing to publish. A run that ended in order has left a note of its tables; one that is still as the
note says need not be looked at closely.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace

from tailrace.connector.publish.continuation import Continuation
from tailrace.connector.publish.following_table import FollowingTable, Standing
from tailrace.connector.publish.live_table import LiveTable
from tailrace.connector.publish.newest_cut import NewestCut
from tailrace.engine.door import Engine
from tailrace.lake.door import LakeFormat, LakeTable, TableVersion
from tailrace.lake.home import LakeHome
from tailrace.lake.records.clean_shutdown import Left, LeftTable
from tailrace.lake.stamp import Stamp
from tailrace.log.reader import LogReader
from tailrace.model.cut import PublishedCut
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord
from tailrace.source.door.codec import Codec

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LakeParts:
    """What it takes to open a lake's tables."""

    engine: Engine
    home: LakeHome
    format: LakeFormat
    codec: type[Codec]

    def stored(self, table: TableId) -> LakeTable:
        return self.format.table(self.home.place_of(table))


class TableOpener:
    """Opens tables of one lake. One thread."""

    def __init__(self, parts: LakeParts, newest: NewestCut) -> None:
        self._parts = parts
        self._newest = newest
        self._recovered: set[TableId] = set()
        self._unchanged: dict[TableId, tuple[TableVersion, LeftTable, LakeTable]] = {}
        """Tables that are as the last run left them, until they are opened."""

    def unchanged(self, table: TableId, left: Left | None) -> TableVersion | None:
        """Where a table stands that is as the last run left it; None if that is not sure."""
        in_cut = self._newest.cut.tables.get(str(table)) if self._newest.cut else None
        note = left.tables.get(str(table)) if left else None
        if in_cut is None or note is None:
            return None
        stored = self._parts.stored(table)
        version = note.still(stored, in_cut)
        if version is not None:
            self._recovered.add(table)
            self._unchanged[table] = version, note, stored
        return version

    def recover(self, table: TableId) -> TableVersion | None:
        """Where a table of the lake stands, live or not. The first call has it go back to its last whole version: we
        may be here after a power cut."""
        stored = self._parts.stored(table)
        if table not in self._recovered:
            cut = self._newest.last_with(table, stored)
            trusted = cut.tables[str(table)].version if cut else None
            damaged = stored.recover(trusted, self._parts.home.damaged_path(table))
            if damaged:
                logger.warning("damaged versions put aside", extra={"table": str(table), "versions": damaged})
            self._recovered.add(table)
        return stored.version()

    def open(
        self, reader: LogReader, table: TableId, record: TableRecord, version: TableVersion, shown_seq: int | None
    ) -> LiveTable:
        """A live table that follows the log from where it stands. The log must have got to its stamp.

        `shown_seq`, where it is known, is a transaction that the table's snapshot is sure to show. `ResyncError` when
        the log does not go back that far.
        """
        stamp = version.stamp
        assert stamp is not None
        before, note, stored = self._unchanged.pop(table, (None, None, None))
        if before != version or not self._newest.names(table, version) or not self._newest.is_logged(reader):
            note = None
        stored = stored or self._parts.stored(table)
        last = self._newest.cut if note else self._newest.last_with(table, stored)
        seq = last.seq if note and last else self._seq_of(reader, table, stamp, last, shown_seq)
        standing = Standing(version.number, stamp, last.tables[str(table)].version if last else None)
        return LiveTable(
            FollowingTable(table, stored, self._parts.codec, standing, seq, record.definition),
            floor=stamp.position if stamp.position.time_us else replace(stamp.position, time_us=now_us()),
            in_cuts=self._newest.seq_with(table, record.copy) is not None,
            lacks_rows=record.lacks_rows,
            # A table that was just copied, or was left so, may have many small files.
            is_untidy=note is None or note.is_untidy,
            left=note,
        )

    def _seq_of(
        self, reader: LogReader, table: TableId, stamp: Stamp, last: PublishedCut | None, shown_seq: int | None
    ) -> int:
        """The last transaction that a table contains, as far as is known. `last` vouches for a table of the same copy
        that had nothing to publish in its batch."""
        log = Continuation(self._parts.codec, reader, table)
        vouched = 0
        if last is not None and last.tables[str(table)].copy == stamp.copy:
            log.require_same_history(last.seq, last.position)
            vouched = log.seq_of_cut(last)
        if stamp.seq is not None:
            log.require_same_history(stamp.seq, stamp.position)
            seq = max(log.seq_of_stamp(stamp), vouched)
        else:
            seq = max(reader.seq_at(self._parts.codec.shown_up_to(stamp.position)), vouched, shown_seq or 0)
            if seq < reader.oldest_seq and reader.oldest_seq > 1 and not vouched and shown_seq is None:
                # What was deleted may have followed the snapshot.
                raise log.gap(stamp.position)
        log.require_rest(stamp, seq, self._newest.seq_with(table, stamp.copy) or 0)
        return seq


def now_us() -> int:
    return time.time_ns() // 1000
