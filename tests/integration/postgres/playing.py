"""A log's playback next to the source: the rows that its changes amount to, one change at a time."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa

from tailrace.changes.decoding import Changes
from tailrace.changes.logged_table import touched_shape
from tailrace.changes.ordering import in_order
from tailrace.log.reader import LogReader
from tailrace.model.change import BEFORE, OP, POS, SEQ
from tailrace.model.kind import Kind
from tailrace.model.table import TableId
from tailrace.source.postgres.source import PostgresSource

T, U = TableId("public", "t"), TableId("public", "u")


def replayed(source: PostgresSource, log: Path, table: TableId) -> dict[int, dict[str, Any]]:
    """The rows of a table that had none, after all that the log tells of it."""
    reader = LogReader(log)
    shape = touched_shape(reader, table, (0, reader.head.seq), source.decode)
    if shape is None:
        return {}
    changes = Changes.of(reader, shape, (0, reader.head.seq)).table()
    rows: dict[int, dict[str, Any]] = {}
    for change in in_order(changes, (SEQ, POS)).to_pylist():
        row = {name: change[name] for name in shape.target.names}
        match change[OP]:
            case "t":
                rows.clear()
            case "d":
                del rows[change[BEFORE]["id"]]
            case "c":
                assert row["id"] not in rows
                rows[row["id"]] = row
            case _:
                del rows[(change[BEFORE] or row)["id"]]
                rows[row["id"]] = row
    return rows


def assert_same(conn: psycopg.Connection, source: PostgresSource, log: Path) -> None:
    for table in (T, U):
        cursor = conn.execute(f"select * from {table}")
        assert cursor.description is not None
        names = [column.name for column in cursor.description]
        expected = {row[0]: dict(zip(names, row, strict=True)) for row in cursor}
        assert replayed(source, log, table) == expected


def kinds(log: Path) -> list[Kind]:
    """Of all records that are written to their end, whether their transactions ended or not."""
    found = []
    for segment in sorted(log.glob("*.arrows")):
        # The writer may be in the middle of a batch, or of the schema before the first one.
        with suppress(OSError, pa.ArrowInvalid), pa.ipc.open_stream(segment) as stream:
            for batch in stream:
                found += [Kind(kind) for kind in batch["kind"].to_pylist()]
    return found
