"""Random histories of a table, written to a real log: what a fold makes of them, next to a Tail of all changes."""

from __future__ import annotations

import math
import pickle
import random
from collections.abc import Iterable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st
from tests.unit.changes import server, test_rows
from tests.unit.log.records import Record, batch, begin, change, commit, open_log
from tests.unit.log.records import schema as shape_record

from tailrace.changes.decoding import Changes
from tailrace.changes.folding import Folded, Writers
from tailrace.changes.logged_table import touched_shape
from tailrace.changes.tail import Tail
from tailrace.connector.publish.batch import TableFold
from tailrace.log.reader import LogReader
from tailrace.model.change import BEFORE, change_schema
from tailrace.model.kind import Kind
from tailrace.model.rows.exact import EXACT, EXACT_BEFORE, EXACT_TYPE, with_exact
from tailrace.model.table import TableSchema
from tailrace.settings import TaskSizes

TINY = TaskSizes(read_bytes=1, fold_bytes=1 << 8)
"""A task reads one frame of the log, and as many as there are keys fold them."""
KINDS = {"c": Kind.INSERT, "u": Kind.UPDATE, "d": Kind.DELETE, "t": Kind.TRUNCATE}


class Sent(NamedTuple):
    """A change as a source sends it: rows by column."""

    op: str
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None
    unchanged: Sequence[str] = ()


class History(NamedTuple):
    schema: TableSchema
    sent: list[Sent]


def of_keys(present: set[server.Key], plan: Iterable[server.Step | None]) -> History:
    """Of a table with a key that has these rows to begin with; None empties it."""
    table = server.Server(present)
    for each in plan:
        if each is None:
            table.truncate()
        else:
            table.step(each)
    columns = server.SCHEMA.names
    return History(
        server.SCHEMA,
        [
            Sent(row[0], row[6], None if row[0] in "dt" else dict(zip(columns, row[8:], strict=True)), row[7] or ())
            for row in table.changes
        ],
    )


def of_rows(base: list[test_rows.Row], plan: Iterable[tuple[str, int, int]], values: list[test_rows.Row]) -> History:
    """Of a table without a key."""
    names, table, sent = test_rows.SCHEMA.names, list(base), []
    for op, which, value in plan:
        if op == "t":
            table.clear()
        if op in "ud" and not table:
            continue
        old = table.pop(which % len(table)) if op in "ud" else None
        new = values[value % len(values)] if op in "cu" else None
        table += [new] if new is not None else []
        sent.append(Sent(op, *(None if row is None else dict(zip(names, row, strict=True)) for row in (old, new))))
    return History(test_rows.SCHEMA, sent)


FEW_KEYS = tuple((number, "x") for number in (0.0, -0.0, 1.0, 2.0, math.nan))
"""So few that a row which moves has mostly been changed before."""
FEW_ROWS = (
    (0, 0.0, None, "a", None, None),
    (0, -0.0, None, "a", None, None),
    (0, math.nan, 0.0, "", None, b""),
    (None, None, None, None, None, None),
    (1, 1.5, 1.5, "x" * 100, Decimal("-1.50"), b"\0"),
)


def keyed_at_random(seed: int) -> History:
    chance = random.Random(seed)
    truncates = chance.choice([0.0, 0.05])

    def step() -> server.Step:
        kind = chance.choice(["put", "put", "move", "move", "delete"])
        flags = [chance.random() < 0.5 for _ in range(4)]
        return server.Step(kind, chance.choice(FEW_KEYS), chance.choice(FEW_KEYS), *flags)

    present = {key for key in FEW_KEYS if chance.random() < 0.5}
    plan = [None if chance.random() < truncates else step() for _ in range(chance.randint(0, 30))]
    return of_keys(present, plan)


def keyless_at_random(seed: int) -> History:
    chance = random.Random(seed)
    ops = chance.choice(["cccuuudd", "cccuuuddt"])
    plan = [(chance.choice(ops), chance.randrange(10), chance.randrange(5)) for _ in range(chance.randint(0, 30))]
    return of_rows(chance.choices(FEW_ROWS, k=chance.randint(0, 6)), plan, list(FEW_ROWS))


seeds = st.integers(0, 1 << 32)
histories = st.one_of(st.builds(keyed_at_random, seeds), st.builds(keyless_at_random, seeds))
"""By a seed, because every one is to be long: most lists that a strategy makes are short."""


def logged(path: Path, history: History) -> LogReader:
    """Three changes are a transaction, and each of those is a frame of its own."""
    writer = open_log(path)
    defined = Record(Kind.SCHEMA, relation=history.schema.relation, payload=history.schema.to_json())
    writer.append(batch([defined, shape_record(99, "id")]))
    for seq, first in enumerate(range(0, len(history.sent), 3), 1):
        changes = [
            change(seq, pickle.dumps(tuple(each)), history.schema.relation, kind=KINDS[each.op])
            for each in history.sent[first : first + 3]
        ]
        writer.append(batch([begin(seq), *changes, change(seq, b"another table's", 99), commit(seq, 100 * seq)]))
        writer.flush()
    writer.close()
    return LogReader(path)


def decode(records: Any, schema: TableSchema) -> pa.RecordBatch:
    """As a source does; some values are ones that their column cannot hold."""
    sent = [Sent(*pickle.loads(payload)) for payload in records.column("payload").to_pylist()]
    places = [records.column(name).to_pylist() for name in ("seq", "position")]
    before, after = ([_held(getattr(each, name), schema) for each in sent] for name in ("before", "after"))
    rows = [
        [each.op, seq, position, 0, 0, None, old, list(each.unchanged) or None, *(new or {}).values()]
        if new
        else [each.op, seq, position, 0, 0, None, old, list(each.unchanged) or None, *[None] * len(schema.names)]
        for each, seq, position, (old, _), (new, _) in zip(sent, *places, before, after, strict=True)
    ]
    fields = change_schema(schema)
    columns = [
        pa.array(list(values), field.type) for values, field in zip(zip(*rows, strict=True), fields, strict=True)
    ]
    found = pa.table(columns, schema=fields)
    for name, side in ((EXACT, after), (EXACT_BEFORE, before)):
        texts = [text for _, text in side]
        found = with_exact(found, pa.array(texts, EXACT_TYPE) if any(texts) else None, name)
    assert found.column(BEFORE).num_chunks == 1
    return found.to_batches()[0]


def _held(
    row: dict[str, Any] | None, schema: TableSchema
) -> tuple[dict[str, Any] | None, list[tuple[str, str]] | None]:
    """A row without what its columns cannot hold, and that."""
    if row is None:
        return None, None
    texts = {name: value for name, value in row.items() if name not in schema.key and _is_odd(value)}
    return {name: None if name in texts else value for name, value in row.items()}, sorted(texts.items()) or None


def _is_odd(value: object) -> bool:
    return isinstance(value, str) and value != "" and value[-1] in "13579a)"


def over(batches: Iterable[pa.RecordBatch]) -> tuple[str, list[pa.RecordBatch]]:
    return "over", list(batches)


def alone(batches: Iterable[pa.RecordBatch]) -> tuple[str, list[pa.RecordBatch]]:
    return "alone", list(batches)


def fold_of(reader: LogReader, history: History, sizes: TaskSizes = TINY) -> TableFold | None:
    """Of all of it; None if there is nothing."""
    between = 0, reader.head.seq
    shape = touched_shape(reader, history.schema.table, between, decode)
    if shape is None:
        return None
    weight = reader.weights({history.schema.relation: 0}, reader.head.seq)[history.schema.relation]
    return TableFold("t", Changes.of(reader, shape, between, sizes.read_bytes), Writers(over, alone), weight, sizes)


def assert_as_a_tail(folded: Folded, fold: TableFold) -> None:
    """The same states, each once, written over the table or in its place as it must be."""
    changes = fold.changes.table()
    assert changes is not None
    tail = Tail(fold.changes.shape, changes)
    ways = {way for way, _ in folded.parts}
    assert ways <= {"alone" if tail.truncated else "over"}
    assert folded.is_truncated == tail.truncated
    found = [states_in(batches) for _, batches in folded.parts]
    assert sorted(state for part in found for state in part) == states_in(tail.states.to_batches())
    assert folded.states == tail.states.num_rows


def states_in(batches: Iterable[pa.RecordBatch]) -> list[str]:
    """As texts: minus zero is not zero, and NaN is itself. Maps have the names of columns in order."""
    rows = [row for each in batches for row in each.to_pylist()]
    return sorted(repr(sorted({EXACT: None, **row}.items())) for row in rows)
