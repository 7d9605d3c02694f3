"""The apply step: all live tables to one transaction, then a cut.

After a crash between two tables' publishes one table is ahead: it continues from its own transaction, the others catch
up, and the next cut is recorded when all are level. A table that fails leaves, and the next cut does without it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Protocol

from tailrace.connector.messages import join_owner
from tailrace.connector.publish.batch import Batch, Publisher
from tailrace.connector.publish.following_table import Move
from tailrace.connector.publish.live_table import LiveTable
from tailrace.connector.publish.newest_cut import NewestCut
from tailrace.connector.publish.opening import LakeParts, TableOpener, now_us
from tailrace.connector.trouble import after_failure
from tailrace.errors import TailraceError, TransientError
from tailrace.failpoint import failpoint
from tailrace.lake.door import TableVersion
from tailrace.lake.records.clean_shutdown import LeftTable
from tailrace.log.reader import LogReader
from tailrace.model.cut import PublishedCut
from tailrace.model.position import START, SourcePosition
from tailrace.model.table import TableId, TableSchema
from tailrace.model.table_state import TableRecord
from tailrace.settings import ConnectorSettings
from tailrace.source.door.values import Definition

CONSUMER = "lake"

logger = logging.getLogger(__name__)


class TableListener(Protocol):
    """Who is told what becomes of tables."""

    def table_failed(self, table: TableId, error: TailraceError) -> None:
        """It had to leave."""

    def table_followed(self, table: TableId, definition: Definition | None, version: int) -> None:
        """It has the shape of this definition, from a version on."""


class Applier:
    """The live tables of one lake. One thread calls it; it publishes tables side by side."""

    def __init__(self, parts: LakeParts, settings: ConnectorSettings, listener: TableListener) -> None:
        self._listener = listener
        self._retries = settings.retries
        self._pool = ThreadPoolExecutor(settings.tables_in_parallel, "publish", join_owner())
        self.publisher = Publisher(parts.engine, settings.sizes, self._pool, f"tailrace {parts.home.lake} publish")
        self._newest = NewestCut(parts.home)
        self.opener = TableOpener(parts, self._newest)
        self._tables: dict[TableId, LiveTable] = {}
        self._acknowledged = 0
        self._has_changes_at = -1
        """The log was last looked at for changes when this was its newest transaction."""

    def close(self) -> None:
        self._pool.shutdown()

    @property
    def tables(self) -> dict[TableId, LiveTable]:
        return dict(self._tables)

    @property
    def cut(self) -> PublishedCut | None:
        """The newest one."""
        return self._newest.cut

    @property
    def seq(self) -> int | None:
        """The transaction that every live table has; None without tables."""
        return min((table.seq for table in self._tables.values()), default=None)

    @property
    def trouble(self) -> TransientError | None:
        """What keeps a table, or the next cut, from being published."""
        tables = [table.trouble.error for table in self._tables.values() if table.trouble]
        return tables[0] if tables else self._newest.trouble

    @property
    def is_stuck(self) -> bool:
        """Whether a table has been in trouble for so long that others no longer wait for it."""
        return any(table.is_stuck for table in self._tables.values())

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
            (named := in_cut.get(str(table))) is not None and named.copy == live.copy
            for table, live in self._tables.items()
        )

    def has_changes(self, reader: LogReader) -> bool:
        """Whether the log has something that a live table lacks: rows will be moved."""
        if self._has_changes_at < reader.head.seq:
            starts = {table.relation: table.seq for table in self._tables.values()}
            self._has_changes_at = reader.head.seq
            return bool(starts) and bool(reader.weights(starts, reader.head.seq))
        return False

    def left(self) -> dict[str, LeftTable]:
        """How a run that ends leaves the tables that the newest cut has as they are."""
        cut = self.cut
        notes = {str(table): live.left_in(cut) for table, live in self._tables.items()} if cut else {}
        return {name: note for name, note in notes.items() if note is not None}

    def join(
        self, reader: LogReader, table: TableId, record: TableRecord, version: TableVersion, shown_seq: int | None
    ) -> None:
        """Let a table follow the log from where it stands: see `TableOpener.open`."""
        self._tables[table] = self.opener.open(reader, table, record, version, shown_seq)

    def is_in_cut(self, table: TableId, copy: int) -> bool:
        """Whether the newest cut has this copy of a table."""
        return self._newest.seq_with(table, copy) is not None

    def leave(self, table: TableId) -> None:
        self._tables.pop(table, None)

    def move(self, table: TableId, schema: TableSchema, position: SourcePosition) -> None:
        """Let a live table take another shape once it has everything before `position`."""
        self._tables[table].following.move = Move(schema, position)

    def next_seq(self, reader: LogReader, bytes_max: int) -> int:
        """How far the next batch goes. Tables that no cut has yet come first: as far as the one that has most, so that
        they can be read at once and the tail waits."""
        tables = [table for table in self._tables.values() if not table.is_stuck]
        if any(not table.in_cuts and table.move is None for table in tables):
            return max(table.seq for table in tables)
        return reader.last_within(min(table.seq for table in tables), bytes_max) if tables else reader.head.seq

    def stops_at(self, reader: LogReader, upto: int) -> int:
        """How far a batch may go: a table takes another shape between two transactions. None waits for a table that is
        stuck."""
        ordinals = [t.move.position.ordinal for t in self._tables.values() if t.move and not t.is_stuck]
        return min([upto, *(reader.seq_at(ordinal) for ordinal in ordinals if ordinal <= reader.head.ordinal)])

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
        tables = [table for table in self._concerned(batch) if table.trouble is None or table.trouble.is_due]
        outcomes = self.publisher.bring(tables, batch)
        for table in tables:
            self._take_outcome(table, outcomes[table.table])
        # After every table is durable: a cut names nothing that a power cut could take.
        return self._record_cut(upto, position)

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

    def _concerned(self, batch: Batch) -> list[LiveTable]:
        """The tables that have changes in a batch or a move, then those that are not durable yet. All others are at the
        batch's end already, however many they are."""
        touched, untouched = [], []
        for table in self._tables.values():
            if table.relation in batch.weights or table.following.is_to_move(batch.reader, batch.upto):
                touched.append(table)
            else:
                table.following.reach(batch.upto)
                untouched.append(table)
        return touched + [table for table in untouched if not table.following.is_durable]

    def _take_outcome(self, live: LiveTable, error: TailraceError | None) -> None:
        if error is None:
            live.trouble = None
            if live.move is None:
                self._listener.table_followed(live.table, live.following.definition, live.version)
        elif isinstance(error, TransientError):
            live.trouble = after_failure(error, live.trouble, self._retries)
            logger.warning("table tried again", extra={"table": str(live.table), "reason": error.message})
        else:
            self.leave(live.table)
            self._listener.table_failed(live.table, error)

    def _record_cut(self, upto: int, position: SourcePosition) -> PublishedCut | None:
        """The cut of all tables that are there, once no table is in trouble, or others need not wait for it."""
        troubled = [table for table in self._tables.values() if table.trouble]
        # The first cut that has a table has it in the shape that the source has: a move while it was copied may lie
        # before or after the point at which its rows were read.
        ready = [table for table in self._tables.values() if table.in_cuts or table.move is None]
        level = [table for table in ready if table.seq == upto and not table.trouble]
        if not all(table.is_stuck for table in troubled) or (not level and (troubled or self.cut is None)):
            return None
        named = {str(table.table): table.named for table in level}
        if troubled and self.cut is not None and (self.cut.seq, self.cut.tables) == (upto, named):
            return None
        position = max([position, *(table.floor for table in level), self.cut.position if self.cut else START])
        if not self._newest.record(PublishedCut(upto, position, named, now_us())):
            return None
        failpoint("publish.cut")
        # Only a cut that is recorded makes a table one that later cuts must have.
        for table in level:
            table.in_cuts = True
        return self.cut

    def _position(self, reader: LogReader, upto: int) -> SourcePosition:
        """Where transaction `upto` committed; where the newest cut stands if the log no longer has it."""
        if upto > 0 and upto >= reader.oldest_seq:
            return reader.position_of(upto)
        return self.cut.position if self.cut else START
