"""Tables without a key: counts of rows against `collections.Counter`, which applies every change one by one."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tailrace.changes.shape import conform
from tailrace.changes.states import events_of, states_of
from tailrace.errors import ResyncError
from tailrace.model.change import BEFORE, COUNT, UNCHANGED, change_schema, row_schema
from tailrace.model.rows.codes import key_codes
from tailrace.model.rows.row import repeated, row_codes
from tailrace.model.table import Column, TableId, TableSchema

SCHEMA = TableSchema(
    TableId("public", "t"),
    1,
    (
        Column("n", "int", "integer", 1),
        Column("f", "double", "double precision", 2),
        Column("g", "float", "real", 3),
        Column("t", "string", "text", 4),
        Column("d", "decimal(12,2)", "numeric(12,2)", 5),
        Column("b", "binary", "bytea", 6),
    ),
    (),
)
Row = tuple[Any, ...]

floats = st.sampled_from([None, 0.0, -0.0, math.nan, -math.nan, 1.5])
rows = st.tuples(
    st.sampled_from([None, 0, 1]),
    floats,
    floats,
    st.sampled_from([None, "", "a", "x" * 100]),
    st.sampled_from([None, Decimal("0.00"), Decimal("-1.50")]),
    st.sampled_from([None, b"", b"\0"]),
)
few_rows = st.lists(rows, min_size=1, max_size=4)
steps = st.lists(st.tuples(st.sampled_from("ccud"), st.integers(0, 9), st.integers(0, 3)), max_size=30)


def exact(row: Row) -> str:
    """As the source writes it: NaN is itself, and minus zero is not zero."""
    return repr(tuple("NaN" if isinstance(v, float) and math.isnan(v) else v for v in row))


def played(base: list[Row], plan: list[tuple[str, int, int]], values: list[Row]) -> tuple[list[Row], pa.Table]:
    """What a table comes to, row by row, and the changes that the source sends meanwhile."""
    table, sent = list(base), []
    for op, which, value in plan:
        new = values[value % len(values)]
        if op != "c" and not table:
            continue
        old = None if op == "c" else table.pop(which % len(table))
        if op != "d":
            table.append(new)
        sent.append((op, old, None if op == "d" else new))
    return table, changes(sent)


def changes(sent: list[tuple[str, Row | None, Row | None]]) -> pa.Table:
    rows = [
        [op, 1, number, 0, 0, None, old and dict(zip(SCHEMA.names, old, strict=True)), None, *(new or [None] * 6)]
        for number, (op, old, new) in enumerate(sent)
    ]
    schema = change_schema(SCHEMA)
    columns = zip(*rows, strict=True) if rows else [[]] * len(schema)
    return pa.table([pa.array(list(c), f.type) for c, f in zip(columns, schema, strict=True)], schema=schema)


def tuples(table: pa.Table) -> list[Row]:
    return list(zip(*(table.column(name).to_pylist() for name in SCHEMA.names), strict=True))


@given(st.lists(rows, max_size=6), steps, few_rows, st.integers(1, 4))
def test_the_counts_bring_any_base_to_where_the_changes_led_however_they_are_dealt_out(
    base: list[Row], plan: list[tuple[str, int, int]], values: list[Row], parts: int
) -> None:
    led_to, sent = played(base, plan, [*values, *base])
    dealt = [sent.take(pa.array(range(part, sent.num_rows, parts), pa.int64())) for part in range(parts)]
    states = states_of(pa.concat_tables([events_of(part, SCHEMA) for part in dealt]), SCHEMA)
    expected = Counter(map(exact, led_to))
    expected.subtract(Counter(map(exact, base)))
    found = list(zip(map(exact, tuples(states)), states.column(COUNT).to_pylist(), strict=True))
    assert sorted(found) == sorted((row, count) for row, count in expected.items() if count)


@given(st.lists(rows, max_size=12))
@example([(0, zero, other, "", None, b"") for zero in (0.0, -0.0, None) for other in (0.0, -0.0, math.nan, -math.nan)])
def test_rows_are_equal_for_counting_where_they_are_for_finding(found: list[Row]) -> None:
    table = pa.table(list(zip(*found, strict=True)) or [[]] * 6, schema=row_schema(SCHEMA))
    columns = [column.combine_chunks() for column in table.columns]
    codes, different = row_codes(columns)
    by_code = {tuple(pair) for pair in zip(codes.tolist(), map(exact, found), strict=True)}
    assert len(by_code) == different == len(set(map(exact, found)))
    in_lake = key_codes(columns, whole_rows=True)
    assert in_lake.second is not None
    pairs = list(zip(in_lake.first.tolist(), in_lake.second.tolist(), strict=True))
    assert len(set(pairs)) == len(set(zip(pairs, codes.tolist(), strict=True))) == different


def test_changes_of_several_shapes_are_counted_in_the_last_one() -> None:
    """(1, …, 'a') and (1, …, 'b') are equal once `t` is gone, in the changes as in the lake."""
    target = TableSchema(SCHEMA.table, 1, (SCHEMA.columns[0], Column("new", "int", "integer", 7)), ())
    old = changes([("d", (1, 0.0, 0.0, "a", None, None), None), ("c", None, (1, 0.0, 0.0, "b", None, None))])
    late = changes([("d", (1, 0.0, 0.0, "c", None, None), None)])
    brought = [conform(table.combine_chunks().to_batches()[0], SCHEMA, target) for table in (old, late)]
    states = states_of(events_of(pa.Table.from_batches(brought), target), target)
    assert states.to_pylist() == [{"n": 1, "new": None, COUNT: -1}]


@pytest.mark.parametrize("lacking", [BEFORE, UNCHANGED])
def test_a_change_that_lacks_part_of_a_row_is_refused(lacking: str) -> None:
    row = (1, 0.0, 0.0, "a", None, None)
    sent = changes([("u", row, row)])
    value = [["t"]] if lacking == UNCHANGED else [None]
    index = sent.schema.get_field_index(lacking)
    with pytest.raises(ResyncError, match="without the whole row"):
        events_of(sent.set_column(index, sent.field(lacking), pa.array(value, sent.field(lacking).type)), SCHEMA)


def test_rows_are_repeated_in_batches_however_often() -> None:
    table = pa.table({"n": [1, 2, 3]})
    batches = list(repeated(table, [1, 200_000, 2]))
    assert max(batch.num_rows for batch in batches) <= 64 << 10
    assert Counter(pa.Table.from_batches(batches).column("n").to_pylist()) == {1: 1, 2: 200_000, 3: 2}
    assert list(repeated(table.slice(0, 0), [])) == []
