"""The engines that can show a cut: Spark and DuckDB, each known in one module, loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from tailrace.lake.cuts import Cuts
from tailrace.lake.door import LakeTable
from tailrace.log.reader import LogReader
from tailrace.model.cut import PublishedCut
from tailrace.read._layers import Layers
from tailrace.read.names import Dialect

Frame = TypeVar("Frame")
"""A table of an engine, computed when its rows are asked for: `DataFrame`, `DuckDBPyRelation`."""


class ReadEngine(Protocol[Frame]):
    """One session of an engine. One thread."""

    dialect: Dialect
    errors: tuple[type[Exception], ...]
    """What it raises for a query that is wrong."""
    tail_bytes_max: int
    """Of decoded changes that may be laid over a table. They take a few times as much memory while that is done."""

    def base_for(
        self, reader: LogReader, cuts: Cuts, newest: PublishedCut, seq: int, last_move: Callable[[], int]
    ) -> PublishedCut:
        """Which cut to lay the changes up to `seq` over: the newest before it, or another that the lake keeps and that
        gives the same rows. After the ordinal of the `last_move`, no table has changed its shape."""
        ...

    def open(self, stored: LakeTable, version: int, *, keep: bool) -> Frame:
        """One version of a table; with `keep`, ready to be read again soon."""
        ...

    def of_arrow(self, table: pa.Table) -> Frame:
        """These rows, type for type."""
        ...

    def shaped(self, frame: Frame, columns: Mapping[str, str | None], shape: Any) -> Frame:
        """The frame with these columns, each taken from one of its own or null, of the type in the Arrow `shape`."""
        ...

    def rows_of(self, frame: Frame, keys: pa.Table) -> pa.Table:
        """The rows with these keys; `keys` has one column for each key column."""
        ...

    def laid_over(self, frame: Frame, over: Layers) -> Frame:
        """The frame's rows with newer ones laid over. Keys are equal as in `model.rows.key`."""
        ...

    def show(self, view: str, frame: Frame) -> None:
        """Make the frame a temporary view, instead of one of that name that is there."""
        ...

    def hide(self, view: str) -> None:
        """Remove a temporary view, if there is one."""
        ...

    def sql(self, query: str) -> Frame:
        """Run a query over views. What is wrong with it is raised here, but for what only its rows can tell."""
        ...

    def columns(self, frame: Frame) -> list[str]: ...

    def types(self, frame: Frame) -> list[str]:
        """The columns' types, in the engine's own words."""
        ...

    def rows(self, frame: Frame, rows_max: int | None = None) -> Iterator[tuple[Any, ...]]:
        """Rows as Python's values; a timestamp with a zone is one in UTC. Not all are in memory at once."""
        ...


def engine_of(session: Any) -> ReadEngine[Any]:
    """The engine of a `SparkSession` or a `DuckDBPyConnection`. Loads no other."""
    if type(session).__module__.partition(".")[0] in ("duckdb", "_duckdb"):
        from tailrace.read.duckdb import DuckDBReadEngine

        return DuckDBReadEngine(session)
    from tailrace.read.spark import SparkReadEngine

    return SparkReadEngine(session)
