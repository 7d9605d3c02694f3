"""Compaction against a plain dictionary that applies every change one by one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.changes.compaction import compact
from tailrace.changes.events import events

KEY = ("id", "part")
COLUMNS = ("id", "a", "part", "big")
ROW = pa.struct([("id", pa.int64()), ("a", pa.string()), ("part", pa.string()), ("big", pa.string())])
SCHEMA = pa.schema(
    [("_op", pa.string()), ("_seq", pa.int64()), ("_pos", pa.int64()), ("_before", ROW)]
    + [("_unchanged", pa.list_(pa.string()))]
    + [(field.name, field.type) for field in ROW]
)

Row = dict[str, Any]
Key = tuple[int, str]

keys = st.tuples(st.integers(0, 3), st.sampled_from(["x", "y"]))
steps = st.lists(
    st.tuples(st.sampled_from(["put", "move", "delete"]), keys, keys, st.booleans(), st.booleans(), st.booleans()),
    max_size=40,
)


def row(key: Key, a: str, big: str) -> Row:
    return {"id": key[0], "a": a, "part": key[1], "big": big}


def history(base: dict[Key, Row], plan: list[Any]) -> tuple[list[Row], dict[Key, Row]]:
    """A history the source could have sent, and the rows it leaves."""
    now = dict(base)
    changes: list[Row] = []

    def send(op: str, before: Row | None, after: Row | None, unchanged: list[str] | None) -> None:
        sent = {name: None if name in (unchanged or []) else value for name, value in (after or {}).items()}
        number = len(changes)
        changes.append(
            {"_op": op, "_seq": number // 3, "_pos": number, "_before": before, "_unchanged": unchanged} | sent
        )

    for number, (step, key, other, leave_out, full, touch_a) in enumerate(plan):
        old = now.get(key)
        if step == "put" and old is None:
            now[key] = row(key, f"a{number}", f"big{number}")
            send("c", None, now[key], None)
        elif step == "delete" and old is not None:
            del now[key]
            send("d", old if full else row(key, None, None), None, None)
        elif old is not None and (step == "put" or other not in now):
            target = other if step == "move" else key
            del now[key]
            now[target] = row(target, f"a{number}" if touch_a else old["a"], old["big"] if leave_out else f"b{number}")
            before = old if full else row(key, None, None) if target != key else None
            send("u", before, now[target], ["big"] if leave_out else None)
    return changes, now


def fold(base: dict[Key, Row], states: pa.Table) -> dict[Key, Row]:
    result = dict(base)
    upserts = []
    for state in states.to_pylist():
        key = (state["id"], state["part"])
        if state["_fresh"]:
            assert key not in base
        if state["_deleted"]:
            del result[key]
        else:
            origin = state["_origin"] or {"id": key[0], "part": key[1]}
            for name in state["_unchanged"] or []:
                state[name] = base[(origin["id"], origin["part"])][name]
            upserts.append((key, {name: state[name] for name in COLUMNS}))
    result.update(upserts)
    return result


@settings(max_examples=3 * settings().max_examples)
@given(st.sets(keys), steps)
def test_the_states_bring_any_base_to_where_the_changes_led(present: set[Key], plan: list[Any]) -> None:
    base = {key: row(key, "old", f"big of {key}") for key in present}
    changes, expected = history(base, plan)
    table = pa.Table.from_pylist(changes, schema=SCHEMA)
    states = compact(events(table, KEY, COLUMNS), COLUMNS)
    assert states.num_rows == len({(s["id"], s["part"]) for s in states.to_pylist()})
    assert fold(base, states) == expected


def test_a_moved_row_takes_its_large_value_along_from_the_base() -> None:
    base = {(1, "x"): row((1, "x"), "old", "large")}
    changes, expected = history(base, [("move", (1, "x"), (2, "x"), True, False, True)])
    states = compact(events(pa.Table.from_pylist(changes, schema=SCHEMA), KEY, COLUMNS), COLUMNS)
    assert expected == {(2, "x"): row((2, "x"), "a0", "large")}
    assert fold(base, states) == expected
    assert [s["_origin"] for s in states.to_pylist() if not s["_deleted"]] == [{"id": 1, "part": "x"}]
