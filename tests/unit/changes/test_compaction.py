"""Compaction against a plain dictionary that applies every change one by one."""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.changes.compaction import compact
from tailrace.changes.events import events
from tailrace.changes.moves import fill_moved
from tailrace.errors import DefiniteError
from tailrace.model.change import DELETED, FRESH, ORIGIN, UNCHANGED, change_schema, row_schema
from tailrace.model.table import Column, TableId, TableSchema

# A table's own columns may be called what ours were called once.
SCHEMA = TableSchema(
    TableId("public", "t"),
    1,
    (
        Column("id", "double", "double precision"),
        Column("_deleted", "string", "text"),
        Column("_key", "string", "text"),
        Column("_unchanged", "string", "text"),
    ),
    ("id", "_key"),
)
KEY, COLUMNS = SCHEMA.key, SCHEMA.names
A, BIG = "_deleted", "_unchanged"

Row = dict[str, Any]
Key = tuple[float, str]


class Step(NamedTuple):
    """What to do with the row of a key; the rest is for updates."""

    kind: str
    key: Key
    target: Key
    leaves_big_out: bool
    sends_old_row: bool
    touches_a: bool
    leaves_key_out: bool


keys = st.tuples(st.sampled_from([0.0, -0.0, 1.0, 2.0, math.nan]), st.sampled_from(["x", "y"]))
steps = st.lists(
    st.builds(Step, st.sampled_from(["put", "move", "delete"]), keys, keys, *[st.booleans()] * 4), max_size=40
)


def row(key: Key, a: str | None, big: str | None) -> Row:
    return {"id": key[0], "_deleted": a, "_key": key[1], "_unchanged": big}


def same(key: Key) -> Any:
    """What Postgres takes for one key: zero has one, NaN another."""
    return "NaN" if math.isnan(key[0]) else key[0], key[1]


def stored(row: Row) -> Key:
    return row["id"], row["_key"]


def exact(rows: dict[Any, Row]) -> dict[Any, str]:
    """As text, because -0.0 is equal to 0.0 and NaN is not equal to itself."""
    return {key: repr(row) for key, row in rows.items()}


class Server:
    """A table that is changed step by step, and the changes that Postgres would send."""

    def __init__(self, present: set[Key]) -> None:
        self.rows = {same(key): row(key, "old", f"big of {key}") for key in present}
        self.changes: list[list[Any]] = []

    def step(self, step: Step) -> None:
        key, number = same(step.key), len(self.changes)
        old = self.rows.get(key)
        if step.kind == "put" and old is None:
            self.rows[key] = row(step.key, f"a{number}", f"big{number}")
            self._send("c", None, self.rows[key], [])
        elif step.kind == "delete" and old is not None:
            del self.rows[key]
            self._send("d", old if step.sends_old_row else row(stored(old), None, None), None, [])
        elif old is not None and (step.kind == "put" or same(step.target) not in {*self.rows} - {key}):
            self._update(old, step)

    def _update(self, old: Row, step: Step) -> None:
        number = len(self.changes)
        target = step.target if step.kind == "move" else stored(old)
        big = old[BIG] if step.leaves_big_out else f"b{number}"
        del self.rows[same(step.key)]
        self.rows[same(target)] = row(target, f"a{number}" if step.touches_a else old[A], big)
        before = None
        # The server compares the stored bytes: zeroes differ, NaNs do not.
        if step.sends_old_row or repr(target) != repr(stored(old)):
            before = old if step.sends_old_row else row(stored(old), None, None)
        leaves_key_out = step.leaves_key_out and before is not None and target[1] == old["_key"]
        self._send("u", before, self.rows[same(target)], [BIG] * step.leaves_big_out + ["_key"] * leaves_key_out)

    def _send(self, op: str, before: Row | None, after: Row | None, unchanged: list[str]) -> None:
        number = len(self.changes)
        sent = [None if after is None or name in unchanged else after[name] for name in COLUMNS]
        self.changes.append([op, number // 3, number, 0, 0, None, before, unchanged or None, *sent])

    def events(self) -> pa.Table:
        schema = change_schema(SCHEMA)
        columns = zip(*self.changes, strict=True) if self.changes else [[]] * len(schema)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
        return events(pa.table(arrays, schema=schema), KEY, COLUMNS)

    def states(self) -> pa.Table:
        return compact(self.events(), COLUMNS)


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
