"""The apply step: all live tables to one transaction, then a cut.

There is no checkpoint. Each table's last version says how far the table is, and a cut says how far all are. After a
crash between two tables' publishes one table is ahead: it continues from its own number, the others catch up, and the
next cut is recorded when all are level. A table that fails leaves, and the next cut does without it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

from tailrace.connector.messages import join_owner
from tailrace.connector.publish.batch import Batch, Publisher
from tailrace.connector.publish.live_table import LiveTable, Move, named
from tailrace.connector.trouble import after_failure
from tailrace.engine.door import Engine
from tailrace.errors import DefiniteError, ResyncError, TailraceError, TransientError, passing
from tailrace.failpoint import failpoint
from tailrace.lake.door import LakeFormat, LakeTable, TableVersion
from tailrace.lake.home import LakeHome
from tailrace.lake.records.clean_shutdown import Left, LeftTable
from tailrace.lake.stamp import Stamp
from tailrace.log.reader import LogReader
from tailrace.model.cut import CutTable, PublishedCut
from tailrace.model.position import START, SourcePosition
from tailrace.model.table import TableId, TableSchema
from tailrace.model.table_state import TableRecord
from tailrace.settings import ConnectorSettings
from tailrace.source.door.codec import Codec
from tailrace.source.door.values import Definition

CONSUMER = "lake"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LakeParts:
    """What it takes to open a lake's tables."""

    engine: Engine
    home: LakeHome
    format: LakeFormat
    codec: type[Codec]


class Listener(Protocol):
    """Who is told what becomes of tables."""

    def table_failed(self, table: TableId, error: TailraceError) -> None:
        """It had to leave."""

    def table_followed(self, table: TableId, definition: Definition | None, version: int) -> None:
        """It has the shape of this definition, from a version on."""


class Applier:
    """The live tables of one lake. One thread calls it; it publishes tables side by side."""

    def __init__(self, parts: LakeParts, settings: ConnectorSettings, listener: Listener) -> None:
        self._parts = parts
        self._listener = listener
        self._backoff = settings.retries.publish
        self._pool = ThreadPoolExecutor(settings.tables_in_parallel, "publish", join_owner())
        self.publisher = Publisher(parts.engine, settings.sizes, self._pool, f"tailrace {parts.home.path} publish")
        self._tables: dict[TableId, LiveTable] = {}
        self._recovered: set[TableId] = set()
        self._still: dict[TableId, tuple[TableVersion, LeftTable, LakeTable]] = {}
        """Tables that are as the last run left them, until they join."""
        self._cut_trouble: TransientError | None = None
        self._acknowledged = 0
        self._has_changes_at = -1
        """The log was last looked at for changes when this was its newest transaction."""
        self._logged_cut: PublishedCut | None = None
        """The last one that the log was found to have."""
        self.cut = parts.home.cuts.newest()
        """The newest one."""

    def close(self) -> None:
        self._pool.shutdown()

    @property
    def tables(self) -> dict[TableId, LiveTable]:
        return dict(self._tables)

    @property
    def seq(self) -> int | None:
        """The transaction that every live table has; None without tables."""
        return min((table.seq for table in self._tables.values()), default=None)

    def is_level(self, seq: int, ordinal: int) -> bool:
        """Whether the newest cut has exactly the live tables, all at a transaction and in the shape of a point."""
        if any(table.move and table.move.position.ordinal <= ordinal for table in self._tables.values()):
            return False
        if self.cut is None:
            return not self._tables
        # A table that had to go back is before the cut that has it.
        if self.seq is not None and min(self.cut.seq, self.seq) < seq:
            return False
        in_cut = self.cut.tables
        return len(in_cut) == len(self._tables) and all(
            (named := in_cut.get(str(each.table))) is not None and named.copy == each.copy
            for each in self._tables.values()
        )

    def has_changes(self, reader: LogReader) -> bool:
        """Whether the log has something that a live table lacks: rows will be moved."""
        if self._has_changes_at < reader.head.seq:
            starts = {each.relation: each.seq for each in self._tables.values()}
            self._has_changes_at = reader.head.seq
            return bool(starts) and bool(reader.weights(starts, reader.head.seq))
        return False

    def still(self, table: TableId, left: Left | None) -> TableVersion | None:
        """Where a table stands that is as the last run left it; None if that is not sure."""
        named = self.cut.tables.get(str(table)) if self.cut else None
        found = left.tables.get(str(table)) if left else None
        if named is None or found is None:
            return None
        stored = self._parts.format.table(self._parts.home.table_path(table))
        version = found.still(stored, named)
        if version is not None:
            self._recovered.add(table)
            self._still[table] = version, found, stored
        return version

    def left(self) -> dict[str, LeftTable]:
        """How a run that ends leaves the tables that the newest cut has as they are."""
        found = {str(each.table): each.left(self.cut) for each in self._tables.values()} if self.cut else {}
        return {name: each for name, each in found.items() if each is not None}

    def recover(self, table: TableId) -> TableVersion | None:
        """Where a table of the lake stands, live or not. Asked for the first time, it goes back to its last whole
        version: we may be here after a power cut."""
        stored = self._parts.format.table(self._parts.home.table_path(table))
        if table not in self._recovered:
            cut = self._cut_that_has(table, stored)
            trusted = cut.tables[str(table)].version if cut else None
            damaged = stored.recover(trusted, self._parts.home.damaged_path(table))
            if damaged:
                logger.warning("damaged versions put aside", extra={"table": str(table), "versions": damaged})
            self._recovered.add(table)
        return stored.version()

    def join(
        self, reader: LogReader, table: TableId, record: TableRecord, version: TableVersion, shown_seq: int | None
    ) -> None:
        """Let a table follow the log from where it stands. The log must have got to its stamp.

        `shown_seq`, where it is known, is a transaction that the table's snapshot is sure to show. `ResyncError` when
        the log does not go back that far.
        """
        stamp = version.stamp
        assert stamp is not None
        before, found, stored = self._still.pop(table, (None, None, None))
        if before != version or not self._is_named(table, version) or not self._is_cut_logged(reader):
            found = None
        stored = stored or self._parts.format.table(self._parts.home.table_path(table))
        last = self.cut if found else self._cut_that_has(table, stored)
        self._tables[table] = LiveTable(
            table=table,
            relation=stamp.relation,
            stored=stored,
            decode=self._parts.codec.decode,
            why_copy=self._parts.codec.why_copy,
            why_part=self._parts.codec.why_part,
            seq=last.seq if found and last else self._seq_of(reader, table, stamp, last, shown_seq),
            standing=named(version.number, stamp),
            durable=last.tables[str(table)].version if last else None,
            floor=stamp.position if stamp.position.time_us else replace(stamp.position, time_us=_now_us()),
            in_cuts=self._cut_seq(table, record.copy) is not None,
            definition=record.definition,
            lacks_rows=record.lacks_rows,
            # What it was copied or left with may be many small files.
            is_untidy=found is None or found.is_untidy,
            stamp=stamp,
            found=found,
        )

    def leave(self, table: TableId) -> None:
        self._tables.pop(table, None)

    def advance(self, reader: LogReader, upto: int) -> PublishedCut | None:
        """Publish every live table up to transaction `upto` and record the cut. A table that fails leaves; one that may
        succeed when tried again is tried again when it is due, and there is no cut for a while (`trouble`).

        A table that cuts have had is in the next one too, so `upto` is at least where it stands; and where the newest
        cut stands, also if every table had to go back.
        """
        known = [table.seq for table in self._tables.values() if table.in_cuts]
        upto = max([upto, *known, self.cut.seq if self.cut and known else 0])
        position = self._position(reader, upto)
        batch = Batch.read(reader, upto, position, self._tables.values())
        touched = self._touched(batch)
        names = {table.table for table in touched}
        unsynced = [each for each in self._tables.values() if not each.is_durable and each.table not in names]
        tables = [each for each in (*touched, *unsynced) if each.trouble is None or each.trouble.is_due]
        outcomes = self.publisher.bring(tables, batch)
        for table in tables:
            self._take_outcome(table, outcomes[table.table])
        return self._record_cut(upto, position)

    def _take_outcome(self, table: LiveTable, error: TailraceError | None) -> None:
        if error is None:
            table.trouble = None
            if table.move is None:
                self._listener.table_followed(table.table, table.definition, table.standing.version)
        elif isinstance(error, TransientError):
            table.trouble = after_failure(error, table.trouble, self._backoff)
            logger.warning("table tried again", extra={"table": str(table.table), "reason": error.message})
        else:
            self.leave(table.table)
            self._listener.table_failed(table.table, error)

    @property
    def trouble(self) -> TransientError | None:
        """What keeps a table, or the next cut, from being published."""
        tables = [table.trouble.error for table in self._tables.values() if table.trouble]
        return tables[0] if tables else self._cut_trouble

    @property
    def is_stuck(self) -> bool:
        """Whether a table has been in trouble for so long that others no longer wait for it."""
        return any(table.is_stuck for table in self._tables.values())

    def _touched(self, batch: Batch) -> list[LiveTable]:
        """The tables that have changes in a batch or a move; the others are there already, however many they are."""
        touched = []
        for table in self._tables.values():
            if table.relation in batch.weights or table.is_to_move(batch.reader, batch.upto):
                touched.append(table)
            else:
                table.seq = max(table.seq, batch.upto)
        return touched

    def move(self, table: TableId, schema: TableSchema, position: SourcePosition) -> None:
        """Let a live table follow to another shape once it has everything before `position`."""
        self._tables[table].move = Move(schema, position)

    def next_seq(self, reader: LogReader, bytes_max: int) -> int:
        """How far the next batch goes. Tables that no cut has yet come first: as far as the one that has most, so that
        they can be read at once and the tail waits."""
        tables = [table for table in self._tables.values() if not table.is_stuck]
        if any(not table.in_cuts and table.move is None for table in tables):
            return max(table.seq for table in tables)
        return reader.last_within(min(table.seq for table in tables), bytes_max) if tables else reader.head.seq

    def stops_at(self, reader: LogReader, upto: int) -> int:
        """How far a batch may go: tables that are to follow do so between two transactions. None waits for a table that
        is stuck."""
        ready = [t.move.position.ordinal for t in self._tables.values() if t.move and not t.is_stuck]
        return min([upto, *(reader.seq_at(each) for each in ready if each <= reader.head.ordinal)])

    def acknowledge(self, reader: LogReader, needed: Sequence[int]) -> None:
        """Let the log delete what no table and no live read needs any more; others need what follows `needed`."""
        own = [] if self.seq is None else [min(self.seq, self.cut.seq if self.cut else 0)]
        # A copy by windows may have looked at the log after us.
        lowest = min([reader.refresh().seq, *needed, *own])
        if lowest > self._acknowledged:
            with suppress(OSError):
                # A disk that is full: nothing is deleted until it can be said.
                reader.acknowledge(CONSUMER, lowest)
                self._acknowledged = lowest

    def _record_cut(self, upto: int, position: SourcePosition) -> PublishedCut | None:
        """The cut of all tables that are there, once no table is in trouble, or others need not wait for it."""
        troubled = [table for table in self._tables.values() if table.trouble]
        # The first cut that has a table has it in the shape that the source has: a move while it was copied may lie
        # before or after the point at which its rows were read.
        ready = [table for table in self._tables.values() if table.in_cuts or table.move is None]
        level = [table for table in ready if table.seq == upto and not table.trouble]
        if not all(table.is_stuck for table in troubled) or (not level and (troubled or self.cut is None)):
            return None
        named = {str(table.table): table.standing for table in level}
        if troubled and self.cut is not None and (self.cut.seq, self.cut.tables) == (upto, named):
            return None
        position = max([position, *(table.floor for table in level), self.cut.position if self.cut else START])
        cut = PublishedCut(upto, position, named, _now_us())
        try:
            self._parts.home.cuts.append(cut)
        except OSError as error:
            self._cut_trouble = passing(error)
            if self._cut_trouble is None:
                raise
            return None
        self.cut, self._cut_trouble = cut, None
        failpoint("publish.cut")
        for table in level:
            table.in_cuts = True
        return self.cut

    def _position(self, reader: LogReader, upto: int) -> SourcePosition:
        """Where transaction `upto` committed; where the newest cut stands if the log no longer has it."""
        if upto > 0 and upto >= reader.oldest_seq:
            return reader.position_of(upto)
        return self.cut.position if self.cut else START

    def _seq_of(
        self, reader: LogReader, table: TableId, stamp: Stamp, last: PublishedCut | None, shown_seq: int | None
    ) -> int:
        """The last transaction that a table contains, as far as is known.

        `last` vouches for a table of the same copy that had nothing to publish in its batch.
        """
        vouched = last.seq if last and last.tables[str(table)].copy == stamp.copy else 0
        if stamp.seq is not None:
            require_same_history(self._parts.codec, reader, table, stamp)
            seq = max(stamp.seq, vouched)
        else:
            seq = max(reader.seq_at(self._parts.codec.shown_up_to(stamp.position)), vouched, shown_seq or 0)
            if seq < reader.oldest_seq and reader.oldest_seq > 1 and not vouched and shown_seq is None:
                # What was deleted may have followed the snapshot.
                raise self._gap(table, stamp.position)
        known = max(seq, self._cut_seq(table, stamp.copy) or 0)
        if known > reader.head.seq:
            raise ResyncError.of(table, f"it is at transaction {known}, but the log ends at {reader.head.seq}")
        if seq < reader.oldest_seq - 1:
            raise self._gap(table, stamp.position)
        return seq

    def _cut_seq(self, table: TableId, copy: int) -> int | None:
        """The newest cut's transaction, if this copy of the table is in it."""
        in_cut = self.cut.tables.get(str(table)) if self.cut else None
        return self.cut.seq if self.cut and in_cut and in_cut.copy == copy else None

    def _is_cut_logged(self, reader: LogReader) -> bool:
        """Whether the log has what follows the newest cut, and under its number the same transaction, if it has that
        one still."""
        cut = self.cut
        if cut is None or not reader.oldest_seq - 1 <= cut.seq <= reader.head.seq:
            return False
        if self._logged_cut is not cut:
            is_other = cut.seq >= reader.oldest_seq and reader.position_of(cut.seq) > cut.position
            self._logged_cut = None if is_other else cut
        return self._logged_cut is cut

    def _is_named(self, table: TableId, version: TableVersion) -> bool:
        """Whether the newest cut names just this version."""
        found = self.cut.tables.get(str(table)) if self.cut else None
        return found is not None and version.stamp is not None and found == named(version.number, version.stamp)

    def _cut_that_has(self, table: TableId, stored: LakeTable) -> PublishedCut | None:
        """The newest cut that names a version which the table has: that number, with that copy and transaction."""

        @cache
        def has(named: CutTable) -> bool:
            try:
                found = stored.version(named.version)
            except DefiniteError:
                return False
            return found is not None and found.stamp is not None and found.stamp.is_of(named)

        def wanted(cut: PublishedCut) -> bool:
            return str(table) in cut.tables and has(cut.tables[str(table)])

        return self.cut if self.cut and wanted(self.cut) else self._parts.home.cuts.newest(wanted)

    def _gap(self, table: TableId, position: SourcePosition) -> ResyncError:
        text = self._parts.codec.format(position)
        return ResyncError.of(table, f"the log no longer has what follows {text}")


def require_same_history(codec: type[Codec], reader: LogReader, table: TableId, stamp: Stamp) -> None:
    """The transaction a table stands at must be the one the log has under that number."""
    seq = stamp.seq or 0
    if not reader.oldest_seq <= seq <= reader.head.seq:
        return
    logged = reader.position_of(seq)
    if logged > stamp.position:
        at, found = codec.format(stamp.position), codec.format(logged)
        raise ResyncError.of(table, f"it is at {at}, where the log has {found}: it is another log")


def _now_us() -> int:
    return time.time_ns() // 1000
