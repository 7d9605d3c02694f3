"""Whether a lake is its Postgres source, table by table: read live, published, or both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import psycopg
from demo.compare import compare_frames
from pyspark.sql import DataFrame, SparkSession

import tailrace
from tailrace.lake.frames import quote


def execute(dsn: str, script: str) -> None:
    """In one transaction."""
    with psycopg.connect(dsn) as conn:
        conn.execute(script)


def assert_live(dsn: str, spark: SparkSession, lake: Path, tables: Sequence[str]) -> None:
    """The newest commit of the log equals the source."""
    _assert_equal(dsn, tailrace.cut(spark, lake, register=False), tables)


def assert_published(dsn: str, spark: SparkSession, lake: Path, tables: Sequence[str]) -> None:
    """The newest published cut equals the source."""
    _assert_equal(dsn, tailrace.cut(spark, lake, published=True, register=False), tables)


def assert_equal(dsn: str, spark: SparkSession, lake: Path, *tables: str) -> None:
    """Live and published."""
    assert_live(dsn, spark, lake, tables)
    assert_published(dsn, spark, lake, tables)


def _assert_equal(dsn: str, cut: tailrace.Cut, tables: Sequence[str]) -> None:
    frames = {table: _present(dsn, table, cut.tables[table]) for table in tables}
    assert [each for each in compare_frames(dsn, frames) if not each.equal] == []


def _present(dsn: str, table: str, frame: DataFrame) -> DataFrame:
    """Without the columns that the source has dropped: the lake keeps them. With all that the source has."""
    namespace, name = table.split(".")
    query = (
        "select attname from pg_attribute where attrelid = format('%%I.%%I', %s::text, %s::text)::regclass "
        "and attnum > 0 and not attisdropped"
    )
    with psycopg.connect(dsn) as conn:
        rows: list[tuple[Any, ...]] = conn.execute(query, (namespace, name)).fetchall()
    return frame.select([quote(row[0]) for row in rows])
