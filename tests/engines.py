"""One cut in both engines: the same rows of the same types, or the same error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

import tailrace
from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.read.duckdb import connect

UNCOMPILED = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
"""With these a query is run as it is planned. Tests have little data and many queries: compiling costs them more."""
COMPILED = {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}


@contextmanager
def compiled(spark: SparkSession) -> Iterator[None]:
    """Inside, queries are compiled, as they are for a user."""
    for name, value in COMPILED.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, value in UNCOMPILED.items():
            spark.conf.set(name, value)


def assert_same_in_duckdb(cut: tailrace.Cut, lake: Path, tables: list[str], **options: Any) -> None:
    """DuckDB shows what a Spark cut with these options shows: columns, types, rows."""
    with connect(is_private=True) as connection:
        other = tailrace.cut(connection, lake, register=False, **options)
        assert (other.text, other.seq, set(other.tables)) == (cut.text, cut.seq, set(cut.tables))
        for table in tables:
            found, wanted = other.tables[table].to_arrow_table(), cut.tables[table].toArrow()
            assert found.schema == wanted.schema, table
            assert multiset(found) == multiset(wanted), table


def multiset(table: pa.Table) -> Counter[str]:
    """Rows as text: NaN is itself, and minus zero is not zero."""
    return Counter(map(repr, zip(*(column.to_pylist() for column in table.columns), strict=True)))


def rows_in_both(spark: SparkSession, lake: Path, table: str, **options: Any) -> list[dict[str, Any]]:
    """The rows that both engines show, or the error that both raise."""
    home = LakeHome(lake)
    with connect(is_private=True) as connection:
        while True:
            standing = home.tables.load(), home.cuts.newest(), home.runs.vouched.load()
            found, other = (_outcome(session, lake, table, options) for session in (spark, connection))
            if standing == (home.tables.load(), home.cuts.newest(), home.runs.vouched.load()):
                break
    assert other == found
    if isinstance(found, DefiniteError):
        raise found
    return found


def rows_in_duckdb(lake: Path, table: str, **options: Any) -> list[dict[str, Any]]:
    with connect(is_private=True) as connection:
        found = _outcome(connection, lake, table, options)
    if isinstance(found, DefiniteError):
        raise found
    return found


class _ToldError(DefiniteError):
    """An error that equals another by what a person sees of it."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ToldError) and (self.message, self.hint) == (other.message, other.hint)

    __hash__ = None  # type: ignore[assignment]


def _outcome(session: Any, lake: Path, table: str, options: dict[str, Any]) -> list[dict[str, Any]] | _ToldError:
    try:
        frame = tailrace.cut(session, lake, register=False, **options).tables[table]
    except DefiniteError as error:
        return _ToldError(error.message, error.hint)
    rows = frame.toArrow() if isinstance(session, SparkSession) else frame.to_arrow_table()
    return sorted(rows.to_pylist(), key=repr)
