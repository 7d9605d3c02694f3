"""Tables read through the door, a little at a time, as snapshots do it on executors."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tailrace.model.change import row_schema
from tailrace.source.door.rows import SnapshotPoint
from tailrace.source.door.values import SourceTable
from tailrace.source.postgres.source import PostgresSource


def described(source: PostgresSource, name: str = "t") -> SourceTable:
    (found,) = source.tables([name], [])
    return found


def read(source: PostgresSource, point: SnapshotPoint, table: SourceTable, chunks: Sequence[Any]) -> pa.Table:
    sent = pickle.loads(pickle.dumps((source, list(chunks))))
    batches = [batch for chunk in sent[1] for batch in sent[0].read_chunk(point, chunk, table.schema)]
    return pa.Table.from_batches(batches, schema=row_schema(table.schema))


def walk(source: PostgresSource, table: SourceTable, rows: int, count: int, order: Sequence[str] = ()) -> pa.Table:
    """The whole table, group by group. A cursor is kept as JSON between them."""
    parts = [row_schema(table.schema).empty_table()]
    with source.window() as point:
        last = source.last_key(point, table, order)
        cursor = None
        while cursor != last:
            chunks = source.key_chunks(point, table, (cursor, last), rows, count, order)
            assert 0 < len(chunks) <= count
            parts.append(read(source, point, table, chunks))
            cursor = json.loads(json.dumps(chunks[-1].upto))
    return pa.concat_tables(parts)


def numbers(found: pa.Table, name: str = "id") -> list[int]:
    return sorted(found.column(name).to_pylist())
