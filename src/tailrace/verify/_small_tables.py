"""Small tables: both sides read by this process, the lake's with DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tailrace.model.change import row_schema
from tailrace.model.exact import EXACT_TYPE, lake_column, ours, padded
from tailrace.read.cut import Cut
from tailrace.read.duckdb import quote
from tailrace.settings import VerifySettings
from tailrace.source.door import SnapshotPoint, Source
from tailrace.verify._in_memory import TooLargeError, compare, rows_within
from tailrace.verify._judged import Judged
from tailrace.verify.report import Compared

CHUNKS_MAX = 64
"""Small ones: those of a partitioned table may be nearly empty."""
BATCH_ROWS = 50_000
GROWTH_MAX = 4
"""In memory rows may take so many times what the source says they take on its disk, where large values are packed."""


class SmallTables:
    """The tables of one cut that DuckDB shows. One thread."""

    def __init__(self, settings: VerifySettings, source: Source, cut: Cut[Any], point: SnapshotPoint) -> None:
        self._settings, self._source, self._cut, self._point = settings, source, cut, point
        self._bytes_max = settings.here_bytes_max

    def compare(self, judged: Judged) -> Compared:
        """`TooLargeError` for a table that is not small."""
        chunks = self._source.chunks(judged.found, max(1, self._bytes_max // CHUNKS_MAX))
        if not self._bytes_max or len(chunks) > CHUNKS_MAX:
            raise TooLargeError
        name = str(judged.table)
        columns = self._cut.tables.columns(name)
        schema = judged.schema(columns)
        exact = lake_column(schema.names).name
        shape = row_schema(schema).append(pa.field(exact, EXACT_TYPE))
        rows = (batch for chunk in chunks for batch in self._source.read_chunk(self._point, chunk, schema))
        source = self._within((padded(batch).rename_columns(shape.names) for batch in rows), shape)
        lake = self._within(self._stored(self._cut.tables[name], shape, ours(columns) is not None), shape)
        return compare(source, lake, schema.key or schema.names, self._settings.keys_max)

    def _within(self, batches: Iterator[Any], shape: Any) -> Any:
        return rows_within(batches, shape, GROWTH_MAX * self._bytes_max)

    @staticmethod
    def _stored(relation: Any, shape: Any, has_exact: bool) -> Iterator[Any]:
        *names, exact = map(quote, shape.names)
        kept = exact if has_exact else f"cast(null as map(varchar, varchar)) as {exact}"
        for batch in relation.project(", ".join([*names, kept])).to_arrow_reader(BATCH_ROWS):
            yield batch.rename_columns(shape.names).cast(shape)
