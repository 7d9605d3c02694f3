"""Texts of values that columns cannot hold: maps and columns of texts are two forms of one thing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.rows.exact import (
    EXACT,
    EXACT_TYPE,
    exact_of,
    filled,
    is_ours,
    lake_column,
    maps_of,
    padded,
    renamed,
    texts_of,
    together,
    with_exact,
)
from tailrace.model.rows.row import row_codes

NAMES = ["a", "b", "c"]
ROWS = st.lists(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["", "infinity", "NaN"])), max_size=8)


def maps(rows: list[dict[str, str]]) -> pa.Array:
    return pa.array([sorted(row.items()) or None for row in rows], EXACT_TYPE)


@given(ROWS, st.integers(0, 3))
def test_maps_are_taken_apart_and_put_together_again(rows: list[dict[str, str]], start: int) -> None:
    whole = maps(rows).slice(start)
    texts = texts_of(whole)
    assert {name: column.to_pylist() for name, column in texts.items()} == {
        name: [row.get(name) for row in rows[start:]] for name in NAMES if any(name in row for row in rows[start:])
    }
    again = maps_of(texts, len(whole))
    assert (again or pa.nulls(len(whole), EXACT_TYPE)).to_pylist() == whole.to_pylist()


@given(ROWS, ROWS, st.data())
def test_a_row_takes_from_an_old_one_what_it_takes_the_column_from(
    rows: list[dict[str, str]], old: list[dict[str, str]], data: st.DataObject
) -> None:
    place = st.integers(-1, len(old) - 1)
    wants = {name: [data.draw(place) for _ in rows] for name in data.draw(st.sets(st.sampled_from(NAMES)))}
    expected = []
    for number, row in enumerate(rows):
        kept = {name: text for name, text in row.items() if wants.get(name, [-1] * len(rows))[number] < 0}
        taken = {name: old[places[number]].get(name) for name, places in wants.items() if places[number] >= 0}
        expected.append(kept | {name: text for name, text in taken.items() if text is not None})
    places = {name: np.array(each, np.int64) for name, each in wants.items()}
    found = filled(maps(rows), places, maps(old), len(rows))
    assert (found or pa.nulls(len(rows), EXACT_TYPE)).to_pylist() == maps(expected).to_pylist()


@given(ROWS)
def test_names_of_columns_follow_and_those_of_dropped_ones_go(rows: list[dict[str, str]]) -> None:
    found = renamed(maps(rows), {"a": "z", "b": "a"})
    expected = [{{"a": "z", "b": "a"}[name]: text for name, text in row.items() if name != "c"} for row in rows]
    assert (found or pa.nulls(len(rows), EXACT_TYPE)).to_pylist() == maps(expected).to_pylist()


def test_rows_have_the_column_only_where_one_needs_it() -> None:
    plain, odd = pa.table({"n": [1]}), with_exact(pa.table({"n": [2]}), maps([{"n": "x"}]))
    both = together([plain, odd], plain.schema)
    assert both.column(EXACT).to_pylist() == [None, [("n", "x")]]
    assert exact_of(plain) is None
    assert exact_of(padded(plain)) is None
    assert with_exact(both, None).column_names == ["n"]
    assert together([], plain.schema) == plain.schema.empty_table()


def test_a_column_of_the_source_keeps_its_name() -> None:
    assert lake_column(["id"]).name == "_exact"
    assert lake_column(["_EXACT", "_exact_"]).name == "_exact__"
    assert is_ours(lake_column(()))


@given(st.lists(st.tuples(st.none() | st.lists(st.none() | st.sampled_from([0.0, -0.0, 1.0]), max_size=2)), max_size=8))
def test_rows_with_arrays_are_equal_where_all_elements_are(rows: list[tuple[list[float | None] | None]]) -> None:
    codes, _ = row_codes([pa.array([row[0] for row in rows], pa.list_(pa.float64()))])
    for one, first in enumerate(rows):
        for other, second in enumerate(rows):
            assert (codes[one] == codes[other]) == (repr(first) == repr(second))


def test_rows_that_differ_in_what_they_keep_are_two_rows() -> None:
    numbers = pa.array([1, 1, 1, 1])
    codes, count = row_codes([numbers, maps([{}, {"a": "x"}, {"a": "x"}, {"b": "x"}])])
    assert count == 3
    assert codes[1] == codes[2]
