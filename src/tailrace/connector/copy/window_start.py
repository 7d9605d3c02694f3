"""How tables begin to grow by windows: from nothing, or from where a copy was when it stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from tailrace.connector.copy.growing_table import GrowingTable, Unseen, has_shape
from tailrace.connector.copy.growth import Growth
from tailrace.connector.copy.running_copy import TableStart
from tailrace.connector.copy.window_reader import require_keyed
from tailrace.connector.publish.continuation import Continuation
from tailrace.connector.publish.following_table import FollowingTable, Standing
from tailrace.connector.publish.opening import LakeParts
from tailrace.errors import DefiniteError, LeaseLostError, TailraceError
from tailrace.failpoint import failpoint
from tailrace.lake.stamp import Stamp
from tailrace.log.reader import LogReader
from tailrace.model.position import SourcePosition
from tailrace.model.rows.text_key import text_keyed
from tailrace.model.table import TableId, TableSchema
from tailrace.source.door.rows import Cursor, WindowPoint
from tailrace.source.door.source import Database
from tailrace.source.door.values import Claim, Definition, SourceTable, Waiting

Started = dict[TableId, GrowingTable | TailraceError]
"""The tables, or why they cannot be copied."""


@dataclass(frozen=True)
class _SourceState:
    """The tables in one state of the source."""

    point: WindowPoint
    described: Mapping[TableId, SourceTable]
    defined: Mapping[TableId, TableSchema]
    last_keys: Mapping[TableId, Cursor | TailraceError | None]
    """The greatest keys, or why a table cannot be copied."""


@dataclass(frozen=True)
class WindowStarter:
    """Starts copies by windows from one source into one lake."""

    parts: LakeParts
    source: Database
    claim: Claim

    def resume(self, reader: LogReader, tables: Mapping[TableId, TableStart]) -> Started:
        """Those of the tables whose copy was begun before."""
        started: Started = {}
        for table, start in tables.items():
            try:
                version = self.parts.stored(table).version()
                stamp = version.stamp if version is not None else None
                if version is None or stamp is None or stamp.copy != start.copy or stamp.growth is None:
                    continue
                assert stamp.seq is not None
                log = Continuation(self.parts.codec, reader, table)
                log.require_same_history(stamp.seq, stamp.position)
                log.require_rest(stamp, stamp.seq)
                growth = Growth.from_json(stamp.growth)
                started[table] = self._growing(table, start, Standing(version.number, stamp), growth, start.definition)
            except DefiniteError as error:
                started[table] = error
        return started

    def begin(
        self,
        reader: LogReader,
        tables: Mapping[TableId, TableStart],
        waiting: Waiting,
        await_log: Callable[[SourcePosition], None],
    ) -> Started:
        """Empty, at the last transaction such that it and all before it show in one state of the source. The greatest
        keys are that state's: what has a greater one later, the stream brings. A transient error leaves all of them for
        another time."""
        # Before the state is taken: a transaction that wrote before the table was sent is then in it, or in the stream.
        self.source.settle(list(tables), waiting)
        state = self._look(tables, waiting)
        await_log(state.point.position)
        upto = reader.seq_at(state.point.position.ordinal)
        unseen = Unseen.between(self.parts.codec, reader, state.point.view, (reader.oldest_seq - 1, upto))
        started: Started = {}
        for table, last in state.last_keys.items():
            if isinstance(last, TailraceError):
                started[table] = last
                continue
            growth = Growth(last, rows_estimated=state.described[table].rows_estimated)
            try:
                started[table] = self._begin(reader, state.defined[table], tables[table], growth, unseen.settled)
            except LeaseLostError:
                raise
            except DefiniteError as error:
                started[table] = error
        return started

    def _look(self, tables: Mapping[TableId, TableStart], waiting: Waiting) -> _SourceState:
        with self.source.window(waiting) as point:
            described = self.source.describe(list(tables))
            schemas = self.source.define(self.claim, {table: start.definition for table, start in tables.items()})
            defined = {table: text_keyed(schema, tables[table].text_key) for table, schema in schemas.items()}
            last_keys: dict[TableId, Cursor | TailraceError | None] = {}
            for table, start in tables.items():
                try:
                    known = require_keyed(table, described, defined)
                    reads = start.has_rows and not start.is_cut_short
                    last_keys[table] = self.source.last_key(point, known, start.order) if reads else None
                except DefiniteError as error:
                    last_keys[table] = error
        return _SourceState(point, described, defined, last_keys)

    def _begin(
        self, reader: LogReader, schema: TableSchema, start: TableStart, growth: Growth, settled: int
    ) -> GrowingTable:
        """The first version of the copy: without rows, or with those of the copy before that stay."""
        kept = self._kept_seq(schema, start) if start.condition is not None else None
        kept = None if kept is not None and kept < reader.oldest_seq - 1 else kept
        if start.is_cut_short and kept is None:
            raise was_stopped(schema.table)
        growth = replace(growth, order=start.order, condition=start.condition if kept is not None else None)
        seq = settled if kept is None else kept
        stamp = Stamp(reader.position_of(seq), schema.relation, start.copy, seq, growth.to_json())
        stored = self.parts.stored(schema.table)
        draft = stored.copy(schema, stamp) if kept is None else stored.publish(schema, stamp, is_growing=True)
        standing = Standing(draft.commit([]), stamp)
        failpoint("window.begun")
        return self._growing(schema.table, start, standing, growth, schema.definition)

    def _kept_seq(self, schema: TableSchema, start: TableStart) -> int | None:
        """The transaction that the copy before stands at, if it is there as the newest cut that has it names it; None
        if all rows have to be read."""
        name, stored = str(schema.table), self.parts.stored(schema.table)
        version = stored.version()
        cut = self.parts.home.cuts.newest(lambda cut: name in cut.tables)
        if version is None or version.stamp is None or cut is None:
            return None
        in_cut = cut.tables[name]
        is_same = version.stamp.is_of(in_cut) and in_cut.copy == start.copy - 1
        return cut.seq if is_same and has_shape(stored, version.number, schema) else None

    def _growing(
        self, table: TableId, start: TableStart, standing: Standing, growth: Growth, definition: Definition | None
    ) -> GrowingTable:
        seq = standing.stamp.seq
        assert seq is not None
        following = FollowingTable(table, self.parts.stored(table), self.parts.codec, standing, seq, definition)
        return GrowingTable(following, growth, start.text_key, durable_seq=seq)


def was_stopped(table: TableId) -> DefiniteError:
    """For a copy that was stopped before it had all rows."""
    return DefiniteError(
        f"{table}: a signal stopped its copy", f"to copy it: tailrace tables resync LAKE {table}", str(table)
    )
