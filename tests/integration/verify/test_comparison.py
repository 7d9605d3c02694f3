"""The comparison itself, on plain rows: every difference has its key, and two never hide each other. Executors and this
process find the same."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
from pyspark.sql import DataFrame, SparkSession

from tailrace.lake.frames import quote
from tailrace.verify import _in_memory, comparison
from tailrace.verify.comparison import DifferingKeys, Sides, checksums, differing_keys
from tailrace.verify.report import Difference

COLUMNS = (
    "id int, `odd ``.name` string, flag boolean, small smallint, big bigint, ratio double, half float,"
    " price decimal(38,10), at timestamp, local timestamp_ntz, day date, bytes binary"
)
NOON = datetime.datetime(2025, 3, 30, 12, 0, 0, 120, tzinfo=datetime.UTC)
LOCAL = NOON.replace(tzinfo=None)
FULL = ("text", True, 1, 2**40, 0.1, 0.5, Decimal("1.5"), NOON, LOCAL, NOON.date(), b"\x00\xff")
NAMES = ["odd `.name", "flag", "small", "big", "ratio", "half", "price", "at", "local", "day", "bytes"]
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


def compare(source: DataFrame, lake: DataFrame, *key: str) -> DifferingKeys:
    sides = Sides(source, lake.select([quote(name) for name in reversed(lake.columns)]), source.columns, key)
    found = checksums(sides)
    differing = differing_keys(sides, found.differing, 100) if found.differing else DifferingKeys()
    here = _in_memory.compare(source.toArrow(), lake.toArrow(), key, 100)
    assert (found.source_rows, found.lake_rows) == (here.source_rows, here.lake_rows) == (source.count(), lake.count())
    # Null comes last here, and first there.
    assert here.differing == differing.counts
    assert sorted(here.keys, key=str) == sorted(differing.shown, key=str)
    return differing


def test_every_kind_of_value_is_told_from_its_neighbours_and_equal_to_itself(spark: SparkSession) -> None:
    nothing = (1000, *(None for _ in NAMES))
    source = [row(number, name, value) for number, (name, value, _) in enumerate(CHANGES)] + [nothing]
    lake = [row(number, name, value) for number, (name, _, value) in enumerate(CHANGES)] + [nothing]
    one, other = (spark.createDataFrame(rows, COLUMNS) for rows in (source, lake))
    assert compare(one, one, "id") == DifferingKeys()
    found = compare(one, other, "id")
    assert found.counts == {Difference.CHANGED: len(CHANGES)}
    named = [(each.key, each.columns) for each in found.shown]
    assert named == [({"id": str(number)}, (name,)) for number, (name, *_) in enumerate(CHANGES)]


def test_rows_that_are_missing_extra_twice_or_exchanged_do_not_hide_each_other(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even in one bucket."""
    monkeypatch.setattr(comparison, "BUCKETS", 1)

    def frame(*rows: tuple[float | None, str | None]) -> DataFrame:
        return spark.createDataFrame(list(rows), "k double, v string")

    kept = [(float(number), f"v{number}") for number in range(20_000)]
    source = frame(*kept, (-1.0, "a"), (-2.0, "b"), (-3.0, "same"), (-4.0, "same"), (-0.5, "gone"), (None, "x"))
    lake = frame(*kept, (-1.0, "b"), (-2.0, "a"), (-3.0, "same"), (-3.0, "same"), (-0.0, "v0"), (None, "y"))
    found = compare(source, lake, "k")
    shown = {each.key["k"]: (each.difference, each.source_rows, each.lake_rows) for each in found.shown}
    assert shown == {
        None: (Difference.CHANGED, 1, 1),
        "-4.0": (Difference.MISSING, 1, 0),
        "-3.0": (Difference.EXTRA, 1, 2),
        "-2.0": (Difference.CHANGED, 1, 1),
        "-1.0": (Difference.CHANGED, 1, 1),
        "-0.5": (Difference.MISSING, 1, 0),
        # To the source and to the lake, -0.0 is the key 0.0.
        "0.0": (Difference.EXTRA, 1, 2),
    }


def test_without_a_key_rows_are_counted(spark: SparkSession) -> None:
    source = spark.createDataFrame([("a", 1), ("a", 1), ("b", None), ("c", 3)], "v string, n int")
    lake = spark.createDataFrame([("a", 1), ("b", None), ("b", None), ("c", 3)], "v string, n int")
    found = compare(source, lake, "v", "n")
    assert [(each.key, each.difference, each.source_rows, each.lake_rows) for each in found.shown] == [
        ({"v": "a", "n": "1"}, Difference.MISSING, 2, 1),
        ({"v": "b", "n": None}, Difference.EXTRA, 1, 2),
    ]
