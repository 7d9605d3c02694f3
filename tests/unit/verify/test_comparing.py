"""Rows compared in one task and dealt out to several, next to a comparison that goes row by row."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.verify.comparisons import compare, compare_divided

from tailrace.engine.dividing import TooLargeError
from tailrace.model.rows.exact import EXACT_TYPE
from tailrace.verify import comparing
from tailrace.verify.comparing import BothSides, Side
from tailrace.verify.dealing import TooManyRows, compare_dealt, deal
from tailrace.verify.report import Compared, RowDifference

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


def expected(source: list[tuple[Any, ...]], lake: list[tuple[Any, ...]]) -> dict[str, tuple[RowDifference, int, int]]:
    """By the key's text."""
    sides: defaultdict[int, tuple[Counter[str], Counter[str]]] = defaultdict(lambda: (Counter(), Counter()))
    for side, rows in enumerate((source, lake)):
        for row in rows:
            sides[row[0]][side][repr(row)] += 1
    found = {}
    for key, (ours, theirs) in sides.items():
        if ours != theirs:
            one, other = ours.total(), theirs.total()
            difference = RowDifference.MISSING if one > other else RowDifference.EXTRA
            found[str(key)] = (difference if one != other else RowDifference.CHANGED, one, other)
    return found


@given(source=ROWS, lake=ROWS, same=ROWS)
def test_every_key_whose_rows_differ_is_found_and_no_other(
    source: list[tuple[Any, ...]], lake: list[tuple[Any, ...]], same: list[tuple[Any, ...]]
) -> None:
    source, lake = source + same, same[::-1] + lake
    found = compare(table(source), table(lake), ("k",), 100)
    assert compare_divided(table(source), table(lake), ("k",), 100, 3) == found
    wanted = expected(source, lake)
    assert (found.source_rows, found.lake_rows) == (len(source), len(lake))
    assert {each.key["k"]: (each.difference, each.source_rows, each.lake_rows) for each in found.keys} == wanted
    assert dict(found.differing) == dict(Counter(difference for difference, *_ in wanted.values()))
    assert [each.key["k"] for each in found.keys] == sorted(wanted), "in their order"


def test_the_columns_that_changed_are_named_and_keys_are_texts() -> None:
    one = table([(1, 0.0, "a", (1,), None), (2, 1.0, "b", None, (("f", "infinity"),)), (3, 2.0, "c", (), None)])
    other = table([(1, -0.0, "a", (1,), None), (2, 1.0, None, (), (("f", "-infinity"),)), (3, 2.0, "c", (), None)])
    found = compare(one, other, ("k",), 1)
    assert found.differing == {RowDifference.CHANGED: 2}
    assert [(each.key, each.columns) for each in found.keys] == [({"k": "1"}, ("f",))]
    assert compare(one, other, ("k",), 2).keys[1].columns == ("t", "a", "e")


def test_rows_without_a_key_are_counted_whatever_their_columns_are() -> None:
    row = (1, 0.0, "a", (1,), None)
    found = compare(table([row, row]), table([row, row, row]), ("k", "f", "t", "a"), 5)
    assert found.differing == {RowDifference.EXTRA: 1}
    assert (found.keys[0].source_rows, found.keys[0].lake_rows) == (2, 3)


def test_no_rows_equal_no_rows() -> None:
    assert compare(table([]), table([]), ("k",), 5) == Compared(0, 0)


KEYS = [("k",), ("f",), ("k", "f"), ("t", "f"), ("a",), ("f", "a"), ("k", "f", "t", "a")]


@given(
    source=ROWS, lake=ROWS, same=ROWS, key=st.sampled_from(KEYS), tasks=st.integers(1, 5), keys_max=st.integers(0, 6)
)
def test_rows_dealt_out_to_tasks_are_reported_as_in_one(
    source: list[tuple[Any, ...]],
    lake: list[tuple[Any, ...]],
    same: list[tuple[Any, ...]],
    key: tuple[str, ...],
    tasks: int,
    keys_max: int,
) -> None:
    one, other = table(source + same), table(same + lake)
    assert compare_divided(one, other, key, keys_max, tasks) == compare(one, other, key, keys_max)


@given(rows=ROWS, tasks=st.integers(1, 4))
def test_rows_that_are_equal_meet_in_one_task(rows: list[tuple[Any, ...]], tasks: int) -> None:
    owners: defaultdict[str, set[int]] = defaultdict(set)
    for task, blob in deal(table(rows).to_batches(), Side.LAKE, ("f", "t", "a"), tasks):
        assert blob[0] == Side.LAKE
        for row in pa.ipc.open_stream(blob[1:]).read_all().to_pylist():
            owners[repr((row["f"], row["t"], row["a"])).replace("-0.0", "0.0")].add(task)
    assert all(len(tasks) == 1 for tasks in owners.values())


@pytest.mark.parametrize("step", [1, 2, 1024])
def test_keys_that_follow_one_another_or_are_all_even_go_to_all_tasks(step: int) -> None:
    rows = pa.record_batch({"k": pa.array(range(0, 1000 * step, step), pa.int64())})
    dealt = [pa.ipc.open_stream(blob[1:]).read_all().num_rows for _, blob in deal([rows], Side.LAKE, ("k",), 4)]
    assert len(dealt) == 4
    assert min(dealt) > 150


def test_what_is_too_large_is_told_before_all_of_it_is_read() -> None:
    both = BothSides(pa.schema([("k", pa.int64())]), 50_000)
    batches = [pa.record_batch({"k": pa.array(range(n, n + 1000), pa.int64())}) for n in range(0, 3000, 1000)]
    both.add(batches[0], Side.LAKE)
    both.add(batches[1], Side.LAKE)
    with pytest.raises(TooLargeError):
        both.add(batches[2], Side.LAKE)


def test_rows_that_are_equal_take_room_once_however_many_there_are() -> None:
    row = pa.record_batch({"k": pa.array([7] * 1000, pa.int64())})
    both = BothSides(row.schema, 50_000)
    for side, times in ((Side.LAKE, 100), (Side.SOURCE, 101)):
        for _ in range(times):
            both.add(row, side)
    found = comparing.compare(both, ("k",), 5)
    assert (found.source_rows, found.lake_rows) == (101_000, 100_000)
    assert [(each.key, each.source_rows, each.lake_rows) for each in found.keys] == [({"k": "7"}, 101_000, 100_000)]


def test_a_task_that_is_dealt_too_much_says_how_much() -> None:
    rows = pa.record_batch({"k": pa.array(range(10_000), pa.int64())})
    blobs = [blob for _ in range(3) for _, blob in deal([rows], Side.SOURCE, ("k",), 1)]
    found = compare_dealt(blobs, BothSides(rows.schema, 100_000), ("k",), 5)
    assert found == TooManyRows(sum(map(len, blobs)))
