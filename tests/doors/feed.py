"""What a scripted source puts into the log, and back: lines to records, records to changes. Pure.

The payload of a change is JSON of its own: `{"before": …, "row": …, "unchanged": […]}`. No other code reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from tests.doors.history import History, Line, Row, from_json, position_of

from tailrace.errors import DefiniteError
from tailrace.log.files.record import RECORD
from tailrace.model.change import (
    BEFORE,
    COMMIT_TS,
    METADATA,
    OP,
    ORDINAL,
    POS,
    SEQ,
    UNCHANGED,
    XID,
    change_schema,
    row_schema,
)
from tailrace.model.commit import Commit
from tailrace.model.kind import Kind
from tailrace.model.rows.lake_types import arrow_type
from tailrace.model.table import Column, TableId, TableSchema

_KINDS = {"insert": Kind.INSERT, "update": Kind.UPDATE, "delete": Kind.DELETE, "truncate": Kind.TRUNCATE}
_OPS = {Kind.INSERT: "c", Kind.UPDATE: "u", Kind.DELETE: "d", Kind.TRUNCATE: "t"}


@dataclass(frozen=True)
class Record:
    """One row of the log."""

    kind: Kind
    ordinal: int
    xid: int = 0
    relation: int = 0
    payload: bytes = b""
    sub_xid: int = 0


def batch_of(records: Sequence[Record]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([vars(record) for record in records], schema=RECORD)


class Feed:
    """Turns the script's lines, given in order from the first, into the records that one claim is sent.

    A transaction whose commit is at or before `after` is left out: the log has it.
    """

    def __init__(self, claim: str, after: int) -> None:
        self.history = History()
        self._claim = claim
        self._after = after
        self._shapes: dict[int, TableSchema] = {}

    @property
    def end_ordinal(self) -> int:
        """Everything before this has been given."""
        return self.history.position.ordinal + 1

    def keepalive(self) -> Record:
        """Says so, where the script ends with something that is not sent."""
        return Record(Kind.KEEPALIVE, self.end_ordinal, payload=self.history.position.detail)

    def records(self, line: Line) -> list[Record]:
        place = position_of(line)
        changes = [record for step in line.get("steps", ()) for record in self._of_step(step, place.ordinal)]
        self.history.apply({name: value for name, value in line.items() if name != "steps"})
        if not changes:
            return []
        commit = Commit(place, self.end_ordinal).to_bytes()
        begin = Record(Kind.BEGIN, place.ordinal, place.ordinal)
        return [begin, *changes, Record(Kind.COMMIT, place.ordinal, place.ordinal, payload=commit)]

    def _of_step(self, step: Line, ordinal: int) -> Iterator[Record]:
        self.history.apply_step(step)
        kind = next(iter(step))
        table = str(TableId(**step[kind]["table"])) if kind == "define" else step[kind]
        if ordinal <= self._after or table not in self.history.sent.get(self._claim, ()):
            return
        schema = self.history.tables[table]
        if self._shapes.get(schema.relation) is not schema:
            self._shapes[schema.relation] = schema
            yield Record(Kind.SCHEMA, ordinal, ordinal, schema.relation, schema.to_json())
        if kind in _KINDS:
            payload = {name: step[name] for name in ("before", "row", "unchanged") if step.get(name)}
            yield Record(_KINDS[kind], ordinal, ordinal, schema.relation, json.dumps(payload).encode())


def decode(records: Any, schema: TableSchema) -> pa.RecordBatch:
    """See `Codec.decode`."""
    payloads = [json.loads(payload) for payload in records.column("payload").to_pylist()]
    before = [payload.get("before") for payload in payloads]
    after = [payload.get("row") for payload in payloads]
    fields = change_schema(schema)
    columns = [
        *_metadata(records),
        pa.StructArray.from_arrays(
            columns_of(before, schema),
            fields=list(fields.field(BEFORE).type),
            mask=pa.array([row is None for row in before], pa.bool_()),
        ),
        pa.array([payload.get("unchanged") for payload in payloads], fields.field(UNCHANGED).type),
        *columns_of(after, schema),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=fields)


def _metadata(records: Any) -> list[pa.Array]:
    values = {
        OP: [_OPS[Kind(kind)] for kind in records.column("kind").to_pylist()],
        SEQ: records.column("seq").to_pylist(),
        POS: records.column("position").to_pylist(),
        ORDINAL: records.column("commit_ordinal").to_pylist(),
        XID: records.column("xid").to_pylist(),
        COMMIT_TS: records.column("commit_time_us").to_pylist(),
    }
    return [pa.array(values[name], type_) for name, type_ in METADATA.items()]


def rows_of(rows: Sequence[Row], schema: TableSchema) -> pa.RecordBatch:
    """The script's rows in Arrow."""
    return pa.RecordBatch.from_arrays(columns_of(rows, schema), schema=row_schema(schema))


def columns_of(rows: Sequence[Row | None], schema: TableSchema) -> list[pa.Array]:
    """One array a column; null where there is no row. A definite error for a value that its type cannot hold."""
    for row in rows:
        if row is not None and set(row) != set(schema.names):
            raise DefiniteError(f"{schema.table}: a row has other columns than its shape", table=str(schema.table))
    return [_column([row and row[column.name] for row in rows], column, schema.table) for column in schema.columns]


def _column(values: Sequence[Any], column: Column, table: TableId) -> pa.Array:
    try:
        return pa.array([from_json(value, column.type) for value in values], arrow_type(column.type))
    except (ValueError, TypeError, ArithmeticError) as error:
        raise DefiniteError(
            f"{table} column {column.name}: a value is no {column.type}: {error}",
            f"change the value, or leave the table out with --exclude {table}",
            table=str(table),
        ) from error
