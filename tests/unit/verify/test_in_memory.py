"""Small tables compared in memory, next to a comparison that goes row by row."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.exact import EXACT_TYPE
from tailrace.verify._in_memory import TooLargeError, compare, rows_within
from tailrace.verify.report import Compared, Difference

SHAPE = pa.schema(
    [("k", pa.int64()), ("f", pa.float64()), ("t", pa.string()), ("a", pa.list_(pa.int32())), ("e", EXACT_TYPE)]
)
ROWS = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.sampled_from([None, 0.0, -0.0, float("nan"), 1.5]),
        st.sampled_from([None, "", "null", "a"]),
        st.sampled_from([None, (), (1,), (None,), (1, None)]),
        st.sampled_from([None, (("t", "x"),), (("f", "infinity"), ("t", "x"))]),
    ),
    max_size=12,
)


def table(rows: list[tuple[Any, ...]]) -> Any:
    columns = [
        [None if each is None else list(each) if isinstance(each, tuple) else each for each in column]
        for column in zip(*rows, strict=True)
    ] or [[] for _ in SHAPE]
    return pa.table([pa.array(values, field.type) for values, field in zip(columns, SHAPE, strict=True)], schema=SHAPE)


def expected(source: list[tuple[Any, ...]], lake: list[tuple[Any, ...]]) -> dict[str, tuple[Difference, int, int]]:
    """By the key's text."""
    sides: defaultdict[int, tuple[Counter[str], Counter[str]]] = defaultdict(lambda: (Counter(), Counter()))
    for side, rows in enumerate((source, lake)):
        for row in rows:
            sides[row[0]][side][repr(row)] += 1
    found = {}
    for key, (ours, theirs) in sides.items():
        if ours != theirs:
            one, other = ours.total(), theirs.total()
            difference = Difference.MISSING if one > other else Difference.EXTRA
            found[str(key)] = (difference if one != other else Difference.CHANGED, one, other)
    return found


@given(source=ROWS, lake=ROWS, same=ROWS)
def test_every_key_whose_rows_differ_is_found_and_no_other(
    source: list[tuple[Any, ...]], lake: list[tuple[Any, ...]], same: list[tuple[Any, ...]]
) -> None:
    source, lake = source + same, same[::-1] + lake
    found = compare(table(source), table(lake), ("k",), 100)
    wanted = expected(source, lake)
    assert (found.source_rows, found.lake_rows) == (len(source), len(lake))
    assert {each.key["k"]: (each.difference, each.source_rows, each.lake_rows) for each in found.keys} == wanted
    assert dict(found.differing) == dict(Counter(difference for difference, *_ in wanted.values()))
    assert [each.key["k"] for each in found.keys] == sorted(wanted), "in their order"


def test_the_columns_that_changed_are_named_and_keys_are_texts() -> None:
    one = table([(1, 0.0, "a", (1,), None), (2, 1.0, "b", None, (("f", "infinity"),)), (3, 2.0, "c", (), None)])
    other = table([(1, -0.0, "a", (1,), None), (2, 1.0, None, (), (("f", "-infinity"),)), (3, 2.0, "c", (), None)])
    found = compare(one, other, ("k",), 1)
    assert found.differing == {Difference.CHANGED: 2}
    assert [(each.key, each.columns) for each in found.keys] == [({"k": "1"}, ("f",))]
    assert compare(one, other, ("k",), 2).keys[1].columns == ("t", "a", "e")


def test_rows_without_a_key_are_counted_whatever_their_columns_are() -> None:
    row = (1, 0.0, "a", (1,), None)
    found = compare(table([row, row]), table([row, row, row]), ("k", "f", "t", "a"), 5)
    assert found.differing == {Difference.EXTRA: 1}
    assert (found.keys[0].source_rows, found.keys[0].lake_rows) == (2, 3)


def test_no_rows_equal_no_rows() -> None:
    assert compare(table([]), table([]), ("k",), 5) == Compared(0, 0)


def test_what_is_too_large_is_told_before_all_of_it_is_read() -> None:
    read = 0

    def batches() -> Any:
        nonlocal read
        for _ in range(100):
            read += 1
            yield pa.record_batch({"k": pa.array(range(1000), pa.int64())})

    with pytest.raises(TooLargeError):
        rows_within(batches(), pa.schema([("k", pa.int64())]), 20_000)
    assert read == 3
