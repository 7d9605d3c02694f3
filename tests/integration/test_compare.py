"""The comparison that everything else is judged by sees every kind of difference."""

from __future__ import annotations

import datetime
from decimal import Decimal

import psycopg
import pyarrow as pa
import pytest
from demo.compare import compare_tables

from tailrace.model.rows.lake_types import arrow_type

COLUMNS = {
    "id": "bigint",
    "price": "decimal(8,2)",
    "ratio": "double",
    "at": "timestamp",
    "local": "timestamp_ntz",
    "day": "date",
    "bytes": "binary",
    "code": "string",
}

NOON = datetime.datetime(2025, 3, 30, 12, 0, 0, 120, tzinfo=datetime.UTC)
ROWS = [
    (1, Decimal("1.50"), 0.1, NOON, NOON.replace(tzinfo=None), NOON.date(), b"\x00\xff", "ab   "),
    (2, None, float("nan"), None, None, None, None, None),
    (3, Decimal("0.00"), -0.0, NOON, datetime.datetime(1, 1, 1), datetime.date(1, 1, 1), b"", '  "x'),
]


@pytest.fixture
def source(database: str) -> str:
    """A table with the rows above, in Postgres's types."""
    with psycopg.connect(database) as connection:
        connection.execute(
            "create table t (id bigint primary key, price numeric(8, 2), ratio float8, at timestamptz,"
            " local timestamp, day date, bytes bytea, code char(5))"
        )
        for row in ROWS:
            connection.execute("insert into t values (%s, %s, %s, %s, %s, %s, %s, %s)", row)
    return database


def _lake(rows: list[tuple[object, ...]]) -> dict[str, pa.Table]:
    shape = pa.schema([(name, arrow_type(type_)) for name, type_ in COLUMNS.items()])
    return {"public.t": pa.Table.from_pylist([dict(zip(COLUMNS, row, strict=True)) for row in rows], schema=shape)}


def _lake_rows() -> list[tuple[object, ...]]:
    """`char(5)` pads what was put in."""
    return [(*row[:-1], row[-1] and str(row[-1]).ljust(5)) for row in ROWS]


def test_equal_rows_of_every_type_are_equal(source: str) -> None:
    (result,) = compare_tables(source, _lake(_lake_rows()))
    assert result.examples == ()
    assert result.equal
    assert (result.source_rows, result.lake_rows) == (3, 3)


def test_a_lost_row_is_missing(source: str) -> None:
    (result,) = compare_tables(source, _lake(_lake_rows()[1:]))
    assert (result.missing, result.extra, result.different) == (1, 0, 0)
    assert not result.equal


def test_a_row_that_is_there_twice_is_extra(source: str) -> None:
    rows = _lake_rows()
    (result,) = compare_tables(source, _lake([*rows, rows[0]]))
    assert (result.missing, result.extra, result.different) == (0, 1, 0)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (1, Decimal("1.51")),
        (2, 0.30000000000000004),
        (3, NOON + datetime.timedelta(microseconds=1)),
        (4, None),
        (5, datetime.date(2025, 3, 29)),
        (6, b""),
        (7, "ab"),
    ],
)
def test_a_changed_value_is_different(source: str, place: int, value: object) -> None:
    rows = _lake_rows()
    rows[0] = (*rows[0][:place], value, *rows[0][place + 1 :])
    (result,) = compare_tables(source, _lake(rows))
    assert (result.missing, result.extra, result.different) == (0, 0, 1)
