"""Every kind of value, told from its neighbours: every difference has its key, and two never hide each other. Rows that
are dealt out to several tasks are told apart in the same way."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from tests.unit.verify.comparisons import compare, compare_divided

from tailrace.verify.report import Compared, RowDifference

NAMES = ["odd `.name", "flag", "small", "big", "ratio", "half", "price", "at", "local", "day", "bytes"]
TYPES = [
    pa.string(),
    pa.bool_(),
    pa.int16(),
    pa.int64(),
    pa.float64(),
    pa.float32(),
    pa.decimal128(38, 10),
    pa.timestamp("us", "UTC"),
    pa.timestamp("us"),
    pa.date32(),
    pa.binary(),
]
SHAPE = pa.schema([("id", pa.int32()), *zip(NAMES, TYPES, strict=True)])
NOON = datetime.datetime(2025, 3, 30, 12, 0, 0, 120, tzinfo=datetime.UTC)
LOCAL = NOON.replace(tzinfo=None)
FULL = ("text", True, 1, 2**40, 0.1, 0.5, Decimal("1.5"), NOON, LOCAL, NOON.date(), b"\x00\xff")
TICK = datetime.timedelta(microseconds=1)
CHANGES: list[tuple[str, object, object]] = [
    ("odd `.name", "text", "tExt"),
    ("odd `.name", "", None),
    ("odd `.name", "null", None),
    ("odd `.name", "a", "a\0"),
    ("flag", True, False),
    ("flag", False, None),
    ("small", 0, None),
    ("big", 2**63 - 1, -(2**63)),
    ("ratio", 0.0, -0.0),
    ("ratio", float("nan"), None),
    ("ratio", float("nan"), float("inf")),
    ("ratio", 0.1, 0.10000000000000002),
    ("half", 0.0, -0.0),
    ("price", Decimal("9999999999999999999999999999.0123456789"), Decimal("9999999999999999999999999999.0123456788")),
    ("at", NOON, NOON + TICK),
    ("local", LOCAL, LOCAL - TICK),
    ("day", datetime.date(1, 1, 1), datetime.date(1, 1, 2)),
    ("bytes", b"", None),
    ("bytes", b"\x00", b""),
    ("bytes", b"\xff", b"\xfe"),
]


def row(number: int, name: str | None = None, value: object = None) -> tuple[object, ...]:
    """A row with one value of its own."""
    return (number, *(value if each == name else usual for each, usual in zip(NAMES, FULL, strict=True)))


def table(shape: pa.Schema, rows: Sequence[tuple[object, ...]]) -> Any:
    columns = zip(*rows, strict=True)
    return pa.table(
        [pa.array(list(each), field.type) for each, field in zip(columns, shape, strict=True)], schema=shape
    )


def both_ways(source: Any, lake: Any, *key: str) -> Compared:
    found = compare(source, lake, key, 100)
    assert compare_divided(source, lake, key, 100, 3) == found
    return found


def test_every_kind_of_value_is_told_from_its_neighbours_and_equal_to_itself() -> None:
    nothing = (1000, *(None for _ in NAMES))
    source = [row(number, name, value) for number, (name, value, _) in enumerate(CHANGES)] + [nothing]
    lake = [row(number, name, value) for number, (name, _, value) in enumerate(CHANGES)] + [nothing]
    one, other = table(SHAPE, source), table(SHAPE, lake)
    assert both_ways(one, one, "id").differing == {}
    found = both_ways(one, other, "id")
    assert found.differing == {RowDifference.CHANGED: len(CHANGES)}
    named = [(each.key, each.columns) for each in found.keys]
    assert named == [({"id": str(number)}, (name,)) for number, (name, *_) in enumerate(CHANGES)]


def test_rows_that_are_missing_extra_twice_or_exchanged_do_not_hide_each_other() -> None:
    shape = pa.schema([("k", pa.float64()), ("v", pa.string())])
    kept = [(float(number), f"v{number}") for number in range(20_000)]
    source = [*kept, (-1.0, "a"), (-2.0, "b"), (-3.0, "same"), (-4.0, "same"), (-0.5, "gone"), (None, "x")]
    lake = [*kept, (-1.0, "b"), (-2.0, "a"), (-3.0, "same"), (-3.0, "same"), (-0.0, "v0"), (None, "y")]
    found = both_ways(table(shape, source), table(shape, lake), "k")
    shown = [(each.key["k"], each.difference, each.source_rows, each.lake_rows) for each in found.keys]
    assert shown == [
        ("-4.0", RowDifference.MISSING, 1, 0),
        ("-3.0", RowDifference.EXTRA, 1, 2),
        ("-2.0", RowDifference.CHANGED, 1, 1),
        ("-1.0", RowDifference.CHANGED, 1, 1),
        ("-0.5", RowDifference.MISSING, 1, 0),
        # To the source and to the lake, -0.0 is the key 0.0.
        ("0.0", RowDifference.EXTRA, 1, 2),
        (None, RowDifference.CHANGED, 1, 1),
    ]


def test_without_a_key_rows_are_counted() -> None:
    shape = pa.schema([("v", pa.string()), ("n", pa.int32())])
    source = table(shape, [("a", 1), ("a", 1), ("b", None), ("c", 3)])
    lake = table(shape, [("a", 1), ("b", None), ("b", None), ("c", 3)])
    found = both_ways(source, lake, "v", "n")
    assert [(each.key, each.difference, each.source_rows, each.lake_rows) for each in found.keys] == [
        ({"v": "a", "n": "1"}, RowDifference.MISSING, 2, 1),
        ({"v": "b", "n": None}, RowDifference.EXTRA, 1, 2),
    ]
