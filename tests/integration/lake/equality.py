"""Whether a lake is its Postgres source, table by table: read live, published, or both, in both engines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import psycopg
import pyarrow as pa
from demo.compare import compare_tables
from pyspark.sql import SparkSession
from tests.engines import assert_same_in_duckdb

import tailrace
from tailrace.read.duckdb import connect


def execute(dsn: str, script: str) -> None:
    """In one transaction."""
    with psycopg.connect(dsn) as conn:
        conn.execute(script)


def assert_live(dsn: str, lake: Path, tables: Sequence[str], spark: SparkSession | None = None) -> None:
    """The newest commit of the log equals the source; with Spark given, also as Spark reads it."""
    _assert_equal(dsn, lake, tables, spark, published=False)


def assert_published(dsn: str, lake: Path, tables: Sequence[str], spark: SparkSession | None = None) -> None:
    """The newest published cut equals the source."""
    _assert_equal(dsn, lake, tables, spark, published=True)


def assert_equal(dsn: str, lake: Path, *tables: str, spark: SparkSession | None = None) -> None:
    """Live and published."""
    assert_live(dsn, lake, tables, spark)
    assert_published(dsn, lake, tables, spark)


def _assert_equal(dsn: str, lake: Path, tables: Sequence[str], spark: SparkSession | None, *, published: bool) -> None:
    with connect(is_private=True) as connection:
        cut = tailrace.cut(connection, lake, published=published, register=False)
        found = {table: cut.tables[table].to_arrow_table() for table in tables}
    assert {table: _own_columns(rows) for table, rows in found.items()} == _columns(dsn, tables)
    assert [each for each in compare_tables(dsn, found) if not each.equal] == []
    if spark is not None:
        in_spark = tailrace.cut(spark, lake, published=published, register=False)
        assert_same_in_duckdb(in_spark, lake, list(tables), published=published)


def _own_columns(rows: pa.Table) -> list[str]:
    """But for the one that keeps values which the others cannot hold."""
    return sorted(field.name for field in rows.schema if not pa.types.is_map(field.type))


def _columns(dsn: str, tables: Sequence[str]) -> dict[str, list[str]]:
    """What the source has, but for columns it computes."""
    query = (
        "select attname from pg_attribute where attrelid = format('%%I.%%I', %s::text, %s::text)::regclass "
        "and attnum > 0 and not attisdropped and attgenerated = ''"
    )
    with psycopg.connect(dsn) as conn:
        return {t: sorted(str(row[0]) for row in conn.execute(query, tuple(t.split(".")))) for t in tables}
