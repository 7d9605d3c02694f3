"""Rows are put in order only where they are not, and keys are numbered by what they are."""

from __future__ import annotations

import datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.changes.ordering import in_order, ordered
from tailrace.model.rows.key import key_codes

small = st.integers(0, 3)


@given(st.lists(st.tuples(small, small)))
def test_rows_come_in_the_order_of_their_columns(rows: list[tuple[int, int]]) -> None:
    columns = {"a": pa.array([a for a, _ in rows], pa.int64()), "b": pa.array([b for _, b in rows], pa.int64())}
    table = pa.table({**columns, "place": pa.array(range(len(rows)), pa.int64())})
    expected = sorted(range(len(rows)), key=rows.__getitem__)
    assert ordered(table, ("a", "b")).tolist() == expected
    assert in_order(table, ("a", "b")).column("place").to_pylist() == expected


VALUES: dict[str, tuple[pa.DataType, list[Any]]] = {
    "whole number": (pa.int64(), [3, -1, 2**62]),
    "text": (pa.string(), ["", "a", "b"]),
    "date": (pa.date32(), [datetime.date(1, 1, 1), datetime.date(2026, 1, 1)]),
    "nullable": (pa.int64(), [None, 0, 1]),
}


@pytest.mark.parametrize("first", VALUES)
@pytest.mark.parametrize("second", [None, *VALUES])
@given(st.data())
def test_keys_have_one_number_exactly_where_they_are_equal(first: str, second: str | None, data: st.DataObject) -> None:
    parts = [VALUES[name] for name in (first, second) if name is not None]
    keys = data.draw(st.lists(st.tuples(*(st.sampled_from(values) for _, values in parts))))
    columns = [pa.array([key[at] for key in keys], type_) for at, (type_, _) in enumerate(parts)]
    codes, count = key_codes(pa.StructArray.from_arrays(columns, [str(at) for at in range(len(parts))]))
    assert len(set(zip(keys, codes.tolist(), strict=True))) == len(set(keys)) == count
    assert set(codes.tolist()) == set(range(count))
