"""Tables without a key in every lake format: counts against `collections.Counter`. One suite for all formats."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from tests.doors.parquet_lake import ParquetFormat
from tests.doors.writing import copy, maintained, publish

from tailrace.errors import ResyncError
from tailrace.lake.delta.format import DeltaFormat
from tailrace.lake.delta.rows.row_files import RowSizes
from tailrace.lake.door import LakeFormat, LakeTable
from tailrace.lake.stamp import Stamp
from tailrace.model.change import COUNT, row_schema
from tailrace.model.position import SourcePosition
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.read.duckdb import connect
from tailrace.storage.local import LocalFolder

SCHEMA = TableSchema(
    TableId("shop", "visits"),
    7,
    (
        Column("n", "int", "INT", 1),
        Column("odd `name", "double", "FLOAT8", 2),
        Column("note", "string", "TEXT", 3),
        Column("price", "decimal(12,2)", "NUMERIC(12,2)", 4),
        Column("at", "timestamp", "TIMESTAMPTZ", 5),
        Column("raw", "binary", "BYTEA", 6),
    ),
    (),
)
LATER = Column("later", "int", "INT", 7)
VALUES: list[list[Any]] = [
    [None, 1, 2],
    [None, 0.0, -0.0, math.nan],
    [None, "", "x" * 70],
    [None, Decimal("0.50")],
    [None, datetime(2024, 1, 1, tzinfo=ZoneInfo("UTC"))],
    [None, b"", b"\0"],
]
Row = tuple[Any, ...]


@pytest.fixture(params=[ParquetFormat(), DeltaFormat(RowSizes(saved_rows_min=50))], ids=lambda each: each.name)
def table(request: pytest.FixtureRequest, tmp_path: Path) -> LakeTable:
    lake_format: LakeFormat = request.param
    return lake_format.table(LocalFolder(tmp_path).at("visits"))


def stamp(seq: int | None) -> Stamp:
    return Stamp(SourcePosition(10 * (seq or 0), 5), 7, 1, seq)


def rows(found: list[Row], schema: TableSchema = SCHEMA) -> pa.Table:
    columns = list(zip(*found, strict=True)) or [()] * len(schema.columns)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, row_schema(schema), strict=True)], schema.names)


def counts(changed: dict[Row, int], schema: TableSchema = SCHEMA) -> pa.Table:
    return rows(list(changed), schema).append_column(COUNT, pa.array(list(changed.values()), pa.int64()))


def content(table: LakeTable) -> Counter[str]:
    standing = table.version()
    assert standing is not None
    scan = table.scan(standing.number)
    with connect(is_private=True) as connection:
        if scan.extension:
            connection.execute(f"load '{scan.extension}'")
        found = connection.sql(f"select * from {scan.sql}").to_arrow_table()
    return Counter(map(repr, zip(*(column.to_pylist() for column in found.columns), strict=True)))


def texts(oracle: Counter[Row]) -> Counter[str]:
    return Counter({repr(row): count for row, count in oracle.items() if count})


def by_text(found: list[Row]) -> list[Row]:
    """One object for each different row, so that a dictionary takes NaN for NaN, and -0.0 for another value."""
    return list({repr(row): row for row in found}.values())


@pytest.mark.parametrize("parts", [1, 3])
def test_published_counts_come_to_what_a_counter_comes_to(table: LakeTable, parts: int) -> None:
    rng = random.Random(3)
    pool = by_text([tuple(map(rng.choice, VALUES)) for _ in range(60)])
    # Keyed by text: Python's 0.0 is -0.0.
    oracle = Counter({repr(row): rng.randint(0, 3) for row in pool})
    copy(table, rows([row for row in pool for _ in range(oracle[repr(row)])]), SCHEMA, stamp(None))
    for seq in range(1, 20):
        changed = [(row, rng.randint(-oracle[repr(row)], 3)) for row in rng.sample(pool, 12)]
        found = rows([row for row, _ in changed]).append_column(COUNT, pa.array([n for _, n in changed], pa.int64()))
        publish(table, found.filter(pa.array([n != 0 for _, n in changed])), SCHEMA, stamp(seq), parts=parts)
        for row, count in changed:
            oracle[repr(row)] += count
        maintained(table)
        assert content(table) == +oracle
    publish(table, counts({pool[0]: 2, pool[1]: 1}), SCHEMA, stamp(20), replaces_all=True)
    assert content(table) == Counter({repr(pool[0]): 2, repr(pool[1]): 1})


@pytest.mark.parametrize(("there", "reason"), [(0, "is missing"), (1, "is there too few times")])
def test_every_publish_proves_that_the_rows_which_go_are_there_so_often(
    table: LakeTable, there: int, reason: str
) -> None:
    other, gone = (1, 0.0, "a", None, None, None), (1, -0.0, "a", None, None, None)
    copy(table, rows([other, other, *[gone] * there]), SCHEMA, stamp(None))
    before = table.version()
    with pytest.raises(ResyncError, match=f"the lake had drifted from the source: row 1, -0.0, a, .* {reason}"):
        publish(table, counts({gone: -2}), SCHEMA, stamp(1))
    assert table.version() == before
    publish(table, counts({other: -2}), SCHEMA, stamp(1))
    assert content(table) == Counter({repr(gone): there} if there else {})


def test_rows_are_found_by_the_columns_that_there_are_now(table: LakeTable) -> None:
    one, other = (1, 0.5, "a", None, None, None), (1, 0.5, "b", None, None, None)
    copy(table, rows([one, one, other]), SCHEMA, stamp(None))
    wider = replace(SCHEMA, columns=(*SCHEMA.columns, LATER))
    publish(table, counts({(*one, None): -1, (*one, 5): 1}, wider), wider, stamp(1))
    assert content(table) == texts(Counter([(*one, None), (*other, None), (*one, 5)]))
    narrower = replace(wider, columns=tuple(each for each in wider.columns if each.name != "note"))
    equal = (1, 0.5, None, None, None, None)
    publish(table, counts({equal: -1}, narrower), narrower, stamp(2))
    assert content(table) == texts(Counter([equal, (1, 0.5, None, None, None, 5)]))
