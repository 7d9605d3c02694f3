"""PostgresRows: states of a Postgres database, and the rows that are read under them."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pyarrow as pa

from tailrace.model.table import TableId, TableSchema
from tailrace.source.door.rows import Cursor, SnapshotPoint, WindowPoint
from tailrace.source.door.values import SourceTable, View, Waiting, wait_in_silence
from tailrace.source.postgres._reached import ReachedDatabase
from tailrace.source.postgres.catalog.tables import measured
from tailrace.source.postgres.rows import chunks as rows_chunks
from tailrace.source.postgres.rows import earlier_writers, key_ranges, views
from tailrace.source.postgres.rows.standby import exact_snapshot, is_standby
from tailrace.source.postgres.server.connection import explained, session
from tailrace.source.postgres.server.lock_waits import Waiter
from tailrace.source.postgres.stream.slot import exported_snapshot

LOCK_SECONDS = 3.0
"""How long a window waits for a table that is locked."""


class PostgresRows(ReachedDatabase):
    """The part `Rows` of the door."""

    @contextmanager
    def snapshot(self, waiting: Waiting = wait_in_silence) -> Iterator[SnapshotPoint]:
        if self._kept.ask(is_standby):
            with exact_snapshot(self._options.dsn, waiting, self._history) as point:
                yield point
            return
        name = f"tailrace_snapshot_{secrets.token_hex(4)}"
        waiter = Waiter(self._kept, waiting)
        with explained(self._options.dsn), exported_snapshot(self._options.dsn, name, waiter) as exported:
            yield SnapshotPoint(self._history.position(exported.lsn), exported.name)

    def window(self, waiting: Waiting = wait_in_silence) -> AbstractContextManager[WindowPoint]:
        self._idle.keep()
        return views.window(self._options.dsn, waiting, self._watermarks, self._history)

    def settle(self, tables: Sequence[TableId], waiting: Waiting = wait_in_silence) -> None:
        with session(self._options.dsn) as conn:
            relations = [info.relation for info in self._find(conn, tables)]
        earlier_writers.settle(self._kept, relations, waiting)

    def view(self) -> View:
        return self._history.dated(self._kept.ask(views.read_view))

    def chunks(self, table: SourceTable, bytes_max: int, readers: int = 1) -> list[rows_chunks.BlockChunk]:
        with session(self._options.dsn) as conn:
            return rows_chunks.plan(measured(conn, table.detail), bytes_max, readers)

    def last_key(self, point: SnapshotPoint, table: SourceTable, order: Sequence[str] = ()) -> Cursor | None:
        with rows_chunks.reader(self._idle, point.token, table.table, table.table, LOCK_SECONDS) as conn:
            return key_ranges.last_key(conn, key_ranges.key_order(conn, table, order))

    def key_chunks(
        self,
        point: SnapshotPoint,
        table: SourceTable,
        between: tuple[Cursor | None, Cursor | None],
        rows: int,
        count: int,
        order: Sequence[str] = (),
    ) -> list[key_ranges.KeyChunk]:
        with rows_chunks.reader(self._idle, point.token, table.table, table.table, LOCK_SECONDS) as conn:
            return key_ranges.plan(conn, key_ranges.key_order(conn, table, order), between, rows, count)

    def chunk_of_keys(self, table: SourceTable, keys: pa.Table) -> key_ranges.KeyList:
        with session(self._options.dsn) as conn:
            return key_ranges.of_keys(key_ranges.key_order(conn, table), keys, table.schema)

    def read_chunk(self, point: SnapshotPoint, chunk: rows_chunks.Chunk, schema: TableSchema) -> Iterator[Any]:
        # A state for seconds is not held for a lock that may take hours. One that is held for hours is worth waiting.
        seconds = LOCK_SECONDS if isinstance(point, WindowPoint) else None
        return rows_chunks.read(self._idle, point.token, chunk, schema, seconds)
