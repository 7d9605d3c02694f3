"""What a verification says: to a person, and about columns that differ."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from tailrace.cli.lake.verify import render
from tailrace.model.table import Column, TableId
from tailrace.model.table_state import TableRecord, TableState
from tailrace.verify.judged_tables import shape_differences
from tailrace.verify.report import KeyDifference, LakeReport, RowDifference, TableReport, TableVerdict

ORDERS = TableReport(
    TableId("public", "orders"),
    TableVerdict.DIFFERENT,
    source_rows=1_000_000,
    lake_rows=1_000_001,
    differing={RowDifference.CHANGED: 1, RowDifference.EXTRA: 40},
    keys=(
        KeyDifference({"id": "7", "day": None}, RowDifference.CHANGED, 1, 1, ("status", "[total]")),
        KeyDifference({"id": "9", "day": "2025-01-01"}, RowDifference.EXTRA, 1, 2),
    ),
)
PAYMENTS = TableReport.of_state(
    TableId("public", "payments"), TableRecord(TableState.ERRORED, "a [bold] value", "change it")
)
EQUAL = TableReport(TableId("public", "equal"), TableVerdict.EQUAL, 3, 3)
LEFT_OUT = TableReport.of_state(TableId("public", "old"), TableRecord(TableState.REMOVED, "it is no longer chosen"))


def test_a_person_sees_each_table_its_keys_and_why_it_could_not_be_compared() -> None:
    console = Console(file=(text := StringIO()), width=100)
    render(LakeReport("0/16B3748", 5, (EQUAL, ORDERS, PAYMENTS)), console)
    assert [" ".join(line.split()) for line in text.getvalue().splitlines()] == [
        "table rows in source rows in lake differing verdict",
        "public.equal 3 3 0 equal",
        "public.orders 1,000,000 1,000,001 41 different",
        "public.payments not compared",
        "",
        "public.orders: of its keys, 40 extra, 1 changed",
        "changed id = 7, day = null columns status, [total]",
        "extra id = 9, day = 2025-01-01 1 in the source, 2 in the lake",
        "and 39 more; --keys shows more of them",
        "",
        "public.payments: it is errored: a [bold] value",
        "hint: change it",
        "",
        "not every table is equal, compared at 0/16B3748",
    ]


def test_a_table_that_could_not_be_compared_is_not_taken_for_equal_and_one_that_was_left_out_does_not_count() -> None:
    assert LakeReport("0/1", 1, (EQUAL, LEFT_OUT)).is_equal
    assert not LakeReport("0/1", 1, (EQUAL, PAYMENTS)).is_equal
    assert not LakeReport("0/1", 1, (EQUAL, ORDERS)).is_equal


def test_columns_differ_by_name_and_type_and_not_by_their_order() -> None:
    source = [Column("id", "int", "integer", 1), Column("v", "bigint", "bigint", 2), Column("w", "string", "text", 3)]
    assert shape_differences(source[::-1], source) == []
    lake = [Column("id", "int", ""), Column("v", "int", ""), Column("x", "string", "")]
    assert shape_differences(lake, source) == [
        "column w is missing in the lake",
        "column x is in the lake only",
        "column v is int in the lake, not bigint",
    ]
