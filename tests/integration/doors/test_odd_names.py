"""Columns of every lake type under names that need quotes everywhere, in every format of lake tables."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.doors.writing import copy, publish
from tests.engines import multiset
from tests.integration.doors.test_lake_tables import FORMATS, in_duckdb, newest, stamp
from tests.spark_columns import lake_columns

from tailrace.lake.door import LakeFormat, LakeTable
from tailrace.model.change import DELETED, FRESH, ORIGIN, UNCHANGED, row_schema
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.storage.local import LocalFolder

VALUES: dict[str, Any] = {
    "boolean": True,
    "smallint": 7,
    "int": 7,
    "bigint": 7,
    "float": 0.5,
    "double": 0.5,
    "decimal(12,2)": Decimal("0.50"),
    "string": "it's",
    "binary": b"\0",
    "date": date(2024, 2, 29),
    "timestamp": datetime(2024, 2, 29, tzinfo=UTC),
    "timestamp_ntz": datetime(2024, 2, 29),
}
NAMES = ["unit price", "a,b", "x=y", "a.b", "tick`", "semi;", "{}", "it's", "tab\t", "line\n", "()", 'say "ü"\\']
KEY = ("order id", "of.part")
Row = dict[str, Any]

PLAIN = TableSchema(TableId("shop", "orders"), 7, (Column("id", "int", "INT", 1),), ("id",))


def columns(first: int, suffix: str) -> tuple[Column, ...]:
    """One of every lake type."""
    return tuple(
        Column(name + suffix, type_, f"source's {name}", number)
        for number, (name, type_) in enumerate(zip(NAMES, VALUES, strict=True), first)
    )


ODD = TableSchema(
    TableId("shop", "orders"),
    7,
    (Column(KEY[0], "int", "INT", 1), Column(KEY[1], "string", "TEXT", 2), *columns(3, "")),
    KEY,
)
WIDER = replace(ODD, columns=(*ODD.columns, *columns(20, " 2")))


def odd_row(number: int, schema: TableSchema, **changes: Any) -> Row:
    values = {column.name: VALUES[column.type] for column in schema.columns if column.name not in KEY}
    return {KEY[0]: number, KEY[1]: "p"} | values | {"it's": f"row {number}"} | changes


def states(schema: TableSchema, *rows: Row) -> pa.Table:
    fields = [(DELETED, pa.bool_()), (FRESH, pa.bool_()), (UNCHANGED, pa.list_(pa.string()))]
    origin = (ORIGIN, pa.struct([(KEY[0], pa.int32()), (KEY[1], pa.string())]))
    plain = {DELETED: False, FRESH: False, UNCHANGED: None, ORIGIN: None}
    shape = pa.schema([*row_schema(schema), *fields, origin])
    return pa.Table.from_pylist([plain | each for each in rows], schema=shape)


def content(table: LakeTable) -> list[Row]:
    rows: list[Row] = in_duckdb(table, newest(table)).to_pylist()
    return sorted(rows, key=lambda each: each[KEY[0]])


@pytest.mark.parametrize("lake_format", FORMATS, ids=lambda each: each.name)
def test_a_table_with_odd_names_lands_over_another_is_published_to_and_gets_more_columns_of_every_type(
    spark: SparkSession, lake_format: LakeFormat, tmp_path: Path
) -> None:
    table = lake_format.table(LocalFolder(tmp_path).at("orders"))
    copy(table, pa.table({"id": pa.array([1], pa.int32())}), PLAIN, stamp(None))
    wider = replace(PLAIN, columns=(*PLAIN.columns, Column("at", "timestamp_ntz", "TIMESTAMP", 2)))
    table.evolve(wider)
    assert_described(table, wider)
    rows = [odd_row(number, ODD) for number in (1, 2, 3)]
    copy(table, pa.Table.from_pylist(rows, schema=row_schema(ODD)), ODD, stamp(None))
    assert content(table) == rows
    assert_described(table, ODD)

    partial = odd_row(1, ODD) | {"a,b": -1} | dict.fromkeys(("it's", 'say "ü"\\', "line\n"))
    batch = states(
        ODD,
        partial | {UNCHANGED: ["it's", 'say "ü"\\', "line\n"]},
        odd_row(2, ODD) | {DELETED: True},
        odd_row(4, ODD) | {FRESH: True},
    )
    publish(table, batch, ODD, stamp(1))
    rows = [odd_row(1, ODD) | {"a,b": -1}, odd_row(3, ODD), odd_row(4, ODD)]
    assert content(table) == rows

    table.evolve(WIDER)
    assert_described(table, WIDER)
    for number, parts in enumerate((1, 2), 3):
        given = states(WIDER, odd_row(number, WIDER), odd_row(number + 10, WIDER) | {FRESH: True})
        publish(table, given, WIDER, stamp(number), parts=parts)
    empty = dict.fromkeys(column.name for column in columns(20, " 2"))
    assert content(table) == [rows[0] | empty, *(odd_row(number, WIDER) for number in (3, 4, 13, 14))]
    assert_same_in_spark(spark, table)
    publish(table, states(WIDER, odd_row(9, WIDER) | {FRESH: True}), WIDER, stamp(5), replaces_all=True)
    assert content(table) == [odd_row(9, WIDER)]
    copy(table, pa.table({"id": pa.array([1], pa.int32())}), PLAIN, stamp(None))
    assert_described(table, PLAIN)


def assert_described(table: LakeTable, schema: TableSchema) -> None:
    """Columns with what their comments say."""
    wanted = [(column.name, column.type, column.source_type, column.number) for column in schema.columns]
    found = table.columns(newest(table))
    assert [(column.name, column.type, column.source_type, column.number) for column in found] == wanted


def assert_same_in_spark(spark: SparkSession, table: LakeTable) -> None:
    version = newest(table)
    frame, shown = table.open(spark, version), in_duckdb(table, version)
    assert [(c, c.number) for c in lake_columns(frame.schema)] == [(c, c.number) for c in table.columns(version)]
    assert shown.schema == frame.toArrow().schema
    assert multiset(shown) == multiset(frame.toArrow())
