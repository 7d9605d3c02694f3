"""Rows of a chunk and the changes that they do not show, against a server that makes every change one by one."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.changes.server import (
    BIG,
    COLUMNS,
    KEY,
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
    stored,
    texts_apart,
)
from tests.unit.changes.server import steps as some_steps

from tailrace.changes.reconcile import Reconciled, reconciled
from tailrace.changes.shape import TableShape
from tailrace.changes.tail import Tail
from tailrace.model.change import DELETED, FRESH, ORIGIN, STATE_METADATA, UNCHANGED, row_schema

TRUNCATE = None
ALL: set[Key] = {(number, text) for number in (0.0, 1.0, 2.0, math.nan) for text in "xy"}
plans = some_steps.flatmap(lambda plan: st.builds(_with_truncate, st.just(plan), st.none() | st.integers(0, 40)))


def _with_truncate(plan: list[Step], at: int | None) -> list[Step | None]:
    return [*plan] if at is None else [*plan[:at], TRUNCATE, *plan[at:]]


def take(server: Server, plan: list[Step | None]) -> None:
    for step in plan:
        server.truncate() if step is TRUNCATE else server.step(step)


def as_rows(rows: list[Row]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=row_schema(SCHEMA))


def reconcile(read: list[Row], server: Server, *, is_exact: bool = True, wanted: set[Key] | None = None) -> Reconciled:
    """`read` with everything that the server has sent; `wanted` are the keys that were read again."""
    tail = Tail(TableShape(SCHEMA, (), lambda *_: None), server.sent(), keeps_gone=True)
    listed = [dict(zip(SCHEMA.key, key, strict=True)) for key in wanted or ()]
    again = None if wanted is None else as_rows(listed).select(list(SCHEMA.key))
    return reconciled(as_rows(read), tail.states, SCHEMA, is_exact=is_exact, is_truncated=tail.truncated, wanted=again)


def rows_in(found: Reconciled) -> dict[Any, Row]:
    rows = found.states.select(list(COLUMNS)).to_pylist()
    assert len({same(stored(each)) for each in rows}) == len(rows)
    return {same(stored(each)): each for each in rows}


def keys_again(found: Reconciled) -> set[Any]:
    return {same(stored(each)) for each in found.again.to_pylist()}


@settings(max_examples=5 * settings().max_examples)
@given(st.sets(keys), st.sets(keys), plans, st.integers(0, 10))
def test_a_chunk_comes_to_the_servers_rows_or_is_to_be_read_again(
    present: set[Key], chunk: set[Key], plan: list[Step | None], shown: int
) -> None:
    """`shown` of the steps may be in the rows already; exact where none is. After a truncate the log has every row."""
    server = Server(present)
    take(server, plan[:shown])
    read = {key: each for key, each in server.rows.items() if key in set(map(same, chunk))}
    take(server, plan[shown:])
    found = reconcile([*read.values()], server, is_exact=shown == 0, wanted=ALL)
    rows, again = rows_in(found), keys_again(found)
    assert exact(rows).items() <= exact(server.rows).items()
    assert again <= server.rows.keys() - rows.keys()
    if TRUNCATE in plan:
        assert not rows
    else:
        assert rows.keys() | again >= read.keys() & server.rows.keys()


@given(st.sets(keys), st.sets(keys), plans)
def test_what_columns_cannot_hold_is_brought_up_to_date_too(
    present: set[Key], chunk: set[Key], plan: list[Step | None]
) -> None:
    server = Server(present)
    read = [each for key, each in server.rows.items() if key in set(map(same, chunk))]
    take(server, plan)
    tail = Tail(TableShape(SCHEMA, (), lambda *_: None), texts_apart(server.sent()), keeps_gone=True)
    rows = texts_apart(as_rows(read))
    found = reconciled(rows, tail.states, SCHEMA, is_exact=True, is_truncated=tail.truncated)
    plain = reconcile(read, server)
    assert exact(rows_in(Reconciled(put_together(found.states), found.again))) == exact(rows_in(plain))
    assert keys_again(found) == keys_again(plain)


@settings(max_examples=3 * settings().max_examples)
@given(st.sets(keys), plans)
def test_what_moved_inside_an_exact_chunk_is_not_read_again(present: set[Key], plan: list[Step | None]) -> None:
    server = Server(present)
    read = [*server.rows.values()]
    take(server, plan)
    assert keys_again(reconcile(read, server, wanted=ALL)) == set()


X, Y, Z = (0.0, "x"), (1.0, "x"), (2.0, "x")


def put(key: Key) -> Step:
    return Step("put", key, key, True, False, True, False)


def move(key: Key, target: Key) -> Step:
    return Step("move", key, target, True, False, True, False)


def delete(key: Key) -> Step:
    return Step("delete", key, key, False, False, False, False)


PLANS: dict[str, tuple[list[Step | None], dict[Key, str]]] = {
    "updated without its large value": ([put(X)], {X: "big of X", Y: "big of Y"}),
    "deleted, and another moved to its key": ([delete(Y), move(X, Y)], {Y: "big of X"}),
    "moved away": ([move(X, Z)], {Y: "big of Y", Z: "big of X"}),
    "moved away and inserted again": ([move(X, Z), put(X)], {X: "big1", Y: "big of Y", Z: "big of X"}),
    "moved away and back": ([move(X, Z), move(Z, X)], {X: "big of X", Y: "big of Y"}),
    "swapped": ([move(X, Z), move(Y, X), move(Z, Y)], {X: "big of Y", Y: "big of X"}),
    "truncated, one inserted again": ([put(X), TRUNCATE, put(X)], {}),
}


def named(key: Key) -> str:
    return next(name for name, each in (("X", X), ("Y", Y)) if each == key)


@pytest.mark.parametrize(("plan", "large"), PLANS.values(), ids=PLANS)
def test_the_chunk_has_what_a_change_left_out(plan: list[Step | None], large: dict[Key, str]) -> None:
    server = Server(set())
    server.rows = {key: row(key, "old", f"big of {named(key)}") for key in (X, Y)}
    read = [*server.rows.values()]
    take(server, plan)
    found = reconcile(read, server, wanted=ALL)
    assert {key: each[BIG] for key, each in rows_in(found).items()} == large
    assert found.again.num_rows == 0


@pytest.mark.parametrize(("read", "is_exact"), [([Y], True), ([X, Y], False)], ids=["not read", "perhaps another row"])
def test_a_row_that_moved_here_is_read_again_where_its_old_row_is(read: list[Key], is_exact: bool) -> None:
    server = Server({X, Y})
    rows = [server.rows[each] for each in read]
    take(server, [delete(Y), move(X, Y)])
    found = reconcile(rows, server, is_exact=is_exact, wanted={Y, Z})
    assert (rows_in(found), keys_again(found)) == ({}, {Y})


def test_a_row_that_moved_past_a_window_is_for_the_table_that_follows_the_log() -> None:
    """It has noted the key, or has the row. A table under load would else have a row to be read again for ever."""
    server = Server({X, Y})
    take(server, [move(X, Z)])
    read = [Server({Y}).rows[Y]]
    for wanted in (None, {Y}):
        assert keys_again(reconcile(read, server, wanted=wanted)) == set()


def test_a_row_that_came_and_went_is_no_ghost_where_the_chunk_already_showed_it() -> None:
    server = Server(set())
    server.step(put(X))
    read = [server.rows[X]]
    server.step(delete(X))
    assert rows_in(reconcile(read, server, is_exact=False)) == {}


def test_what_comes_out_is_what_a_publish_takes() -> None:
    server = Server({X, Y})
    unchanged = reconciled(as_rows([*server.rows.values()]), None, SCHEMA, is_exact=True)
    server.step(put(X))
    found = reconcile([*Server({X, Y}).rows.values()], server)
    for each in (unchanged, found):
        assert each.states.column_names == [*COLUMNS, *STATE_METADATA]
        assert each.states.select(server.states().column_names).schema.equals(server.states().schema)
        assert each.again.column_names == list(KEY)
        assert each.states.column(UNCHANGED).null_count == each.states.column(ORIGIN).null_count == 2
        assert not any(each.states.column(FRESH).to_pylist() + each.states.column(DELETED).to_pylist())


def test_rows_stay_where_they_were_read_and_a_changed_one_is_where_the_one_was_that_it_replaces() -> None:
    ordered = [(float(number), "x") for number in range(8)]
    server = Server(set(ordered))
    read = [server.rows[same(key)] for key in ordered]
    for kind, key in (("move", ordered[3]), ("delete", ordered[5])):
        server.step(Step(kind, key, key, True, False, True, False))
    found = reconcile(read, server).states.select(list(KEY)).to_pylist()
    assert found == [dict(zip(KEY, key, strict=True)) for key in ordered if key != ordered[5]]
