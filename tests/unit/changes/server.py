"""A table that is changed step by step, and the changes that Postgres would send of it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

from tailrace.changes.compaction import compact
from tailrace.changes.events import events
from tailrace.model.change import UNCHANGED, change_schema
from tailrace.model.rows.exact import EXACT, EXACT_TYPE, padded, with_exact
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
    """The table. Three changes are a transaction."""

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

    def truncate(self) -> None:
        self.rows = {}
        self._send("t", None, None, [])

    def _send(self, op: str, before: Row | None, after: Row | None, unchanged: list[str]) -> None:
        number = len(self.changes)
        sent = [None if after is None or name in unchanged else after[name] for name in COLUMNS]
        self.changes.append([op, number // 3, number, 0, 0, None, before, unchanged or None, *sent])

    def sent(self) -> pa.Table:
        schema = change_schema(SCHEMA)
        columns = zip(*self.changes, strict=True) if self.changes else [[]] * len(schema)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, schema, strict=True)]
        return pa.table(arrays, schema=schema)

    def events(self) -> pa.Table:
        return events(self.sent(), KEY, COLUMNS)

    def states(self) -> pa.Table:
        return compact(self.events(), COLUMNS)


def is_odd(text: str | None) -> bool:
    return text is not None and text[-1] in "13579)"


def texts_apart(rows: pa.Table) -> pa.Table:
    """Some values become ones that their column cannot hold."""
    kept = []
    for name in (A, BIG):
        texts = rows.column(name).to_pylist()
        kept.append([(name, text) if is_odd(text) else None for text in texts])
        values = pa.array([None if is_odd(text) else text for text in texts], rows.schema.field(name).type)
        rows = rows.set_column(rows.schema.get_field_index(name), name, values)
    maps = [sorted(each for each in row if each) or None for row in zip(*kept, strict=True)]
    return with_exact(rows, pa.array(maps, EXACT_TYPE) if any(maps) else None)


def put_together(states: pa.Table) -> pa.Table:
    """Such values in their columns again; a column has its value or a text, never both."""
    rows = padded(states).to_pylist()
    for each in rows:
        for name, text in each[EXACT] or ():
            assert each[name] is None
            assert name not in (each[UNCHANGED] or [])
            each[name] = text
    return pa.Table.from_pylist(rows, schema=with_exact(states, None).schema)
