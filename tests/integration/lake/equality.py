"""Whether a lake is its Postgres source, table by table: read live, published, or both, in both engines."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import psycopg
from demo.compare import compare_frames
from pyspark.sql import SparkSession
from tests.engines import assert_same_in_duckdb

import tailrace


def execute(dsn: str, script: str) -> None:
    """In one transaction."""
    with psycopg.connect(dsn) as conn:
        conn.execute(script)


def assert_live(dsn: str, spark: SparkSession, lake: Path, tables: Sequence[str]) -> None:
    """The newest commit of the log equals the source."""
    _assert_equal(dsn, spark, lake, tables)


def assert_published(dsn: str, spark: SparkSession, lake: Path, tables: Sequence[str]) -> None:
    """The newest published cut equals the source."""
    _assert_equal(dsn, spark, lake, tables, published=True)


def assert_equal(dsn: str, spark: SparkSession, lake: Path, *tables: str) -> None:
    """Live and published."""
    assert_live(dsn, spark, lake, tables)
    assert_published(dsn, spark, lake, tables)


def _assert_equal(dsn: str, spark: SparkSession, lake: Path, tables: Sequence[str], published: bool = False) -> None:
    cut = tailrace.cut(spark, lake, published=published, register=False)
    frames = {table: cut.tables[table] for table in tables}
    assert {table: sorted(frame.columns) for table, frame in frames.items()} == _columns(dsn, tables)
    assert [each for each in compare_frames(dsn, frames) if not each.equal] == []
    assert_same_in_duckdb(cut, lake, list(tables), published=published)


def _columns(dsn: str, tables: Sequence[str]) -> dict[str, list[str]]:
    """What the source has, but for columns it computes."""
    query = (
        "select attname from pg_attribute where attrelid = format('%%I.%%I', %s::text, %s::text)::regclass "
        "and attnum > 0 and not attisdropped and attgenerated = ''"
    )
    with psycopg.connect(dsn) as conn:
        return {t: sorted(str(row[0]) for row in conn.execute(query, tuple(t.split(".")))) for t in tables}
