"""Delta tables as readers without Spark see them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.doors.writing import copy, publish
from tests.integration.doors.test_lake_tables import LATER, SCHEMA, content, land, row, stamp, state, states

from tailrace.errors import DefiniteError
from tailrace.lake.delta.format import DeltaFormat
from tailrace.model.table import Column, TableSchema
from tailrace.read.duckdb import connect
from tailrace.storage.local import LocalFolder


def checkpoint(spark: SparkSession, path: Path) -> int:
    """Let Delta make one at a version of its own; returns that version."""
    for value in ("1", "1"):
        spark.sql(f"alter table delta.`{path}` set tblproperties ('delta.checkpointInterval' = '{value}')")
    last = max((path / "_delta_log").glob("*.checkpoint.parquet"))
    return int(last.name.partition(".")[0])


def test_columns_are_known_from_a_checkpoint_where_the_commits_before_it_are_gone(
    spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "orders"
    table = DeltaFormat().table(LocalFolder(path))
    land(table, [row(1), row(2)])
    publish(table, states(state(row(1), deleted=True)), SCHEMA, stamp(1))
    table.evolve(TableSchema(SCHEMA.table, 7, (*SCHEMA.columns, LATER), SCHEMA.key))
    newest = checkpoint(spark, path)
    stored = DeltaFormat().table(LocalFolder(path))
    assert [column.number for column in stored.columns(0)] == [column.number for column in SCHEMA.columns]
    for version in range(newest):
        (path / "_delta_log" / f"{version:020d}.json").unlink()
    assert [column.name for column in stored.columns(newest)] == [*SCHEMA.names, "later"]
    assert content(stored) == [row(2) | {"later": None}]
    assert stored.version(1) is None


def test_a_folder_that_duckdb_would_misread_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(DefiniteError, match="there is a % in it") as caught:
        DeltaFormat().table(LocalFolder(tmp_path).at("100%20")).scan(0)
    assert caught.value.hint == "read it with Spark: tailrace query --engine spark"


def test_a_condition_on_a_column_with_a_dot_in_its_name_finds_its_rows(tmp_path: Path) -> None:
    table = DeltaFormat().table(LocalFolder(tmp_path).at("orders"))
    schema = TableSchema(
        SCHEMA.table, 7, (Column("id", "int", "INT", 1), Column("of.part", "string", "TEXT", 2)), ("id",)
    )
    copy(table, pa.table({"id": pa.array([1, 2], pa.int32()), "of.part": ["a", "b"]}), schema, stamp(None))
    scan = table.scan(0)
    with connect(is_private=True) as connection:
        connection.execute(f"load '{scan.extension}'")
        assert connection.sql(f"""select id from {scan.sql} where "of.part" = 'b'""").fetchall() == [(2,)]
