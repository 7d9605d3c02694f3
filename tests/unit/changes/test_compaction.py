"""Compaction against a plain dictionary that applies every change one by one."""

from __future__ import annotations

import math
import time
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.changes.server import (
    BIG,
    COLUMNS,
    SCHEMA,
    Key,
    Row,
    Server,
    Step,
    exact,
    keys,
    put_together,
    row,
    same,
    steps,
    stored,
    texts_apart,
)

from tailrace.changes.compaction import compact
from tailrace.changes.events import events
from tailrace.changes.states import fill_moved
from tailrace.errors import DefiniteError
from tailrace.model.change import DELETED, FRESH, ORIGIN, UNCHANGED, row_schema


def fold(base: dict[Any, Row], states: pa.Table) -> dict[Any, Row]:
    result = dict(base)
    upserts = {}
    for state in states.to_pylist():
        key = same(stored(state))
        if state[FRESH]:
            assert key not in base
        if state[DELETED]:
            del result[key]
        else:
            origin = state[ORIGIN] and same(stored(state[ORIGIN]))
            left_out = {name: base[origin or key][name] for name in state[UNCHANGED] or []}
            upserts[key] = {name: state[name] for name in COLUMNS} | left_out
    return result | upserts


@settings(max_examples=3 * settings().max_examples)
@given(st.sets(keys), steps)
def test_the_states_bring_any_base_to_where_the_changes_led(present: set[Key], plan: list[Step]) -> None:
    server = Server(present)
    base = dict(server.rows)
    for each in plan:
        server.step(each)
    states = server.states()
    assert states.num_rows == len({same(stored(s)) for s in states.to_pylist()})
    assert exact(fold(base, states)) == exact(server.rows)
    filled = fill_moved(states, SCHEMA, lambda keys: rows_of(base, keys))
    assert filled.column(ORIGIN).null_count == filled.num_rows
    assert exact(fold(base, filled)) == exact(server.rows)


def rows_of(base: dict[Any, Row], keys: pa.Table) -> pa.Table:
    wanted = {same(stored(each)) for each in keys.to_pylist()}
    return pa.Table.from_pylist([row for key, row in base.items() if key in wanted], schema=row_schema(SCHEMA))


def test_a_moved_row_takes_its_large_value_along_from_the_base() -> None:
    server = Server({(math.nan, "x")})
    base = dict(server.rows)
    server.step(Step("move", (math.nan, "x"), (2.0, "x"), True, False, True, False))
    states = server.states()
    assert server.rows == {(2.0, "x"): row((2.0, "x"), "a0", "big of (nan, 'x')")}
    assert fold(base, states) == server.rows
    assert [repr(s[ORIGIN]) for s in states.to_pylist() if not s[DELETED]] == ["{'id': nan, '_key': 'x'}"]
    with pytest.raises(DefiniteError, match="missing in the lake"):
        fill_moved(states, SCHEMA, lambda keys: rows_of({}, keys))


@pytest.mark.parametrize("zero", [0.0, -0.0, math.nan])
def test_a_row_whose_key_only_looks_different_does_not_move(zero: float) -> None:
    server = Server({(zero, "x")})
    server.step(Step("move", (zero, "x"), (-zero, "x"), True, True, True, True))
    assert server.events().num_rows == 1
    (state,) = server.states().to_pylist()
    assert (repr(state["id"]), state[UNCHANGED], state[FRESH]) == (repr(-zero), [BIG], False)


def test_the_time_for_rows_that_move_grows_with_their_number_and_not_with_its_square() -> None:
    """A hundred thousand rows take about a second; looking through all events for each of them takes half a minute."""
    server = Server(set())
    count = 100_000
    for number in range(count):
        old, new = row((float(number), "x"), None, None), row((float(number + count), "x"), "a", None)
        server._send("u", old, new, [BIG])
    began = time.monotonic()
    states = server.states()
    assert time.monotonic() - began < 15
    assert states.num_rows == 2 * count
    assert states.column(ORIGIN).null_count == count


@given(st.sets(keys), steps)
def test_what_columns_cannot_hold_follows_its_row_and_its_column(present: set[Key], plan: list[Step]) -> None:
    server = Server(present)
    base = dict(server.rows)
    for each in plan:
        server.step(each)
    states = compact(events(texts_apart(server.sent()), SCHEMA.key, COLUMNS), COLUMNS)
    assert exact(fold(base, put_together(states))) == exact(server.rows)
    filled = fill_moved(states, SCHEMA, lambda keys: texts_apart(rows_of(base, keys)))
    assert exact(fold(base, put_together(filled))) == exact(server.rows)
