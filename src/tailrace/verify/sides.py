"""The two sides of a table, read inside a task, as batches of one Arrow schema.

The source's rows come through the source's own reader. The lake's come through DuckDB, which knows nothing of how we
write: verification does not trust our own code where another's reads the same files.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from tailrace.errors import DefiniteError, TailraceError
from tailrace.lake import formats
from tailrace.lake.home import LakeHome
from tailrace.model.change import row_schema
from tailrace.model.lake_address import LakeAddress
from tailrace.model.rows.exact import EXACT_TYPE, lake_column, ours, padded
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.read.cut import cut_as_it_lies
from tailrace.read.duckdb import connect, quote
from tailrace.source import kinds
from tailrace.source.door.rows import Rows, SnapshotPoint
from tailrace.source.door.source import Source
from tailrace.source.door.values import Chunk

DUCKDB_BYTES_MAX = 256 << 20
"""More than this goes to the disk."""
BATCH_ROWS = 4096
"""Rows of the lake at a time. They may be wide, and DuckDB itself takes 2048."""


@dataclass(frozen=True)
class Sides:
    """A source and its lake at one point. Travels to tasks."""

    rows: Rows
    point: SnapshotPoint
    lake: LakeAddress
    kind: tuple[str, str]
    """The name of the source's kind, and where it is: another process may not know it."""
    format: tuple[str, str]
    """The same of the lake's format."""

    @classmethod
    def of(cls, source: Source, point: SnapshotPoint, home: LakeHome) -> Sides:
        record = home.source()
        assert record is not None
        kind = source.kind, kinds.path_of(source)
        return cls(source, point, home.lake, kind, (record.format, formats.path_of(record.format)))

    def source_rows(self, chunks: Iterable[Chunk], schema: TableSchema) -> Iterator[Any]:
        """The rows of some chunks, on one connection."""
        shape = shape_of(schema)
        for chunk in chunks:
            for batch in self.rows.read_chunk(self.point, chunk, schema):
                yield padded(batch).rename_columns(shape.names).cast(shape)

    @contextmanager
    def lake_table(self, table: TableId) -> Iterator[ShownTable]:
        """The lake's side of a table, opened here. A definite error where it cannot be read."""
        kinds.register(*self.kind)
        formats.register(*self.format)
        with tempfile.TemporaryDirectory(prefix="tailrace-verify-") as folder, connect(is_private=True) as connection:
            # A task's standard output is not ours to draw on.
            connection.execute("set enable_progress_bar = false")
            connection.execute("set threads = 1")
            connection.execute(f"set memory_limit = '{DUCKDB_BYTES_MAX} bytes'")
            connection.execute("set temp_directory = $1", [folder])
            with _unreadable():
                tables = cut_as_it_lies(connection, self.lake, self.point.position).tables
                found = ShownTable(tables[str(table)], tuple(tables.columns(str(table))))
            yield found


@dataclass(frozen=True)
class ShownTable:
    """What DuckDB shows of a table, and its columns."""

    relation: Any
    columns: tuple[Column, ...]

    def rows(self, schema: TableSchema) -> Iterator[Any]:
        """All of them, some at a time."""
        shape = shape_of(schema)
        *names, exact = map(quote, shape.names)
        kept = exact if ours(self.columns) is not None else f"cast(null as map(varchar, varchar)) as {exact}"
        with _unreadable():
            for batch in self.relation.project(", ".join([*names, kept])).to_arrow_reader(BATCH_ROWS):
                yield batch.rename_columns(shape.names).cast(shape)


def shape_of(schema: TableSchema) -> Any:
    """The columns in which both sides are read, and one more for what those cannot hold (`model.rows.exact`)."""
    return row_schema(schema).append(pa.field(lake_column(schema.names).name, EXACT_TYPE))


@contextmanager
def _unreadable() -> Iterator[None]:
    """An error of a reader's own, such as a damaged file, as a definite one. Spark would try again what it does not
    know."""
    try:
        yield
    except (TailraceError, OSError):
        raise
    except Exception as error:
        first_line = (str(error) or type(error).__name__).strip().splitlines()[0]
        raise DefiniteError(f"it cannot be read: {first_line[:300]}") from error
