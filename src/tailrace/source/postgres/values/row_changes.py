"""Row changes as the server sent them, decoded to typed Arrow columns, a batch at a time.

    log records of one relation and one schema ──▶ OP SEQ … BEFORE UNCHANGED, then the table's columns

A value the server left out because it lies unchanged in TOAST is null and its column is named in
`UNCHANGED`; where the server also sent the complete old row (replica identity full), the value is
taken from there instead. A value that its column cannot hold is null there, and its text is in `EXACT`, or in
`EXACT_BEFORE` where it is the old row's. Bytes that are not what the schema says are a definite error, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from tailrace.errors import DefiniteError, ResyncError, TextKeyError
from tailrace.model.change import BEFORE, COMMIT_TS, METADATA, change_schema
from tailrace.model.kind import Kind
from tailrace.model.rows.exact import EXACT, EXACT_BEFORE, maps_of, with_exact
from tailrace.model.rows.lake_types import arrow_type
from tailrace.model.table import Column, TableSchema
from tailrace.source.postgres.server.lsn import Lsn
from tailrace.source.postgres.values import casts as values
from tailrace.source.postgres.values._tuples import (
    NO_TUPLE,
    UNCHANGED,
    Cells,
    MalformedError,
    Payloads,
    Positions,
    require,
    walk,
)

_INSERT, _UPDATE, _DELETE, _TRUNCATE = (
    np.uint8(kind) for kind in (Kind.INSERT, Kind.UPDATE, Kind.DELETE, Kind.TRUNCATE)
)
_UNSENT = np.uint8(Kind.UNSENT)
_OPS: dict[int, str] = {Kind.INSERT: "c", Kind.UPDATE: "u", Kind.DELETE: "d", Kind.TRUNCATE: "t"}
PART_BYTES = 3 << 19
PART_ROWS_MIN = 2_000
"""So much is decoded at a time: what was read for one column is still near the processor when the next one is read."""
_MESSAGE_BYTE = np.zeros(256, dtype=np.uint8)
for _kind, _byte in {Kind.INSERT: b"I", Kind.UPDATE: b"U", Kind.DELETE: b"D", Kind.TRUNCATE: b"T"}.items():
    _MESSAGE_BYTE[_kind] = _byte[0]
_OLD_KEY, _OLD_ROW, _NEW_ROW = b"KON"
_RELATION_AT = 1
Texts = Mapping[str, Any]
"""By column, the texts of values that it cannot hold; null in all other rows."""
_TUPLE_AT = 5  # four more in a streamed transaction, where an xid follows the message byte


def decode(records: Any, schema: TableSchema, part_bytes: int = PART_BYTES, part_rows_min: int = PART_ROWS_MIN) -> Any:
    """Decode a batch of log records, all of the schema's relation and of this version of its shape.

    One row out for each row in, in the same order. Deletes and truncates have no new row: their
    columns are null.
    """
    payloads = Payloads.of(records.column("payload"))
    kinds = records.column("kind").to_numpy(zero_copy_only=False)
    unsent = np.flatnonzero(kinds == _UNSENT)
    if len(unsent):
        raise ResyncError.of(schema.table, records.column("payload")[int(unsent[0])].as_py().decode())
    names = change_schema(schema)
    parts = []
    for start, stop in _cuts(payloads, part_bytes, part_rows_min):
        try:
            parts.append(_decode_part(payloads.part(start, stop), kinds[start:stop], schema, names))
        except MalformedError as error:
            lsn = Lsn(records.column("ordinal")[start + error.row].as_py())
            raise DefiniteError(
                f"{schema.table}: the change at {lsn} cannot be decoded: {error.reason}",
                "the log or the recorded shape of the table is damaged; copy the table again",
                table=str(schema.table),
            ) from None
    part = _joined(parts)
    found = pa.RecordBatch.from_arrays([*_metadata(records), *part.arrays], schema=names)
    found = with_exact(found, kept_texts(part.new_texts, schema, len(kinds)), EXACT)
    return with_exact(found, kept_texts(part.old_texts, schema, len(kinds)), EXACT_BEFORE)


@dataclass(frozen=True)
class _Part:
    """Some of the rows: all columns but those of the metadata."""

    arrays: list[Any]
    new_texts: Texts
    old_texts: Texts


def _cuts(payloads: Payloads, part_bytes: int, part_rows_min: int) -> list[tuple[int, int]]:
    """The rows of each part; one where there are none."""
    count = len(payloads)
    data_bytes = int(payloads.ends[-1] - payloads.starts[0]) if count else 0
    rows = max(part_rows_min, -(-count // (data_bytes // part_bytes + 1)))
    return [(start, min(start + rows, count)) for start in range(0, max(1, count), rows)]


def _decode_part(payloads: Payloads, kinds: Any, schema: TableSchema, names: Any) -> _Part:
    old, new = _find_tuples(payloads, kinds, schema)
    new = [cells.filled_from(before) for cells, before in zip(new, old, strict=True)] if old and new else new
    before, old_texts = _columns(payloads, old, schema) if old else ([], {})
    after, new_texts = _columns(payloads, new, schema) if new else (_nothing(schema, len(kinds)), {})
    before_type = names.field(BEFORE).type
    arrays = [_before(before, old, before_type, len(kinds)), _unchanged(new, schema, len(kinds)), *after]
    return _Part(arrays, new_texts, old_texts)


def _joined(parts: list[_Part]) -> _Part:
    if len(parts) == 1:
        return parts[0]
    arrays = [pa.concat_arrays(of_parts) for of_parts in zip(*(part.arrays for part in parts), strict=True)]
    counts = [len(part.arrays[0]) for part in parts]
    new_texts = _joined_texts([part.new_texts for part in parts], counts)
    return _Part(arrays, new_texts, _joined_texts([part.old_texts for part in parts], counts))


def _joined_texts(parts: list[Texts], counts: list[int]) -> Texts:
    names = dict.fromkeys(name for part in parts for name in part)
    return {
        name: pa.concat_arrays(
            [part.get(name, pa.nulls(count, pa.string())) for part, count in zip(parts, counts, strict=True)]
        )
        for name in names
    }


def _find_tuples(payloads: Payloads, kinds: Any, schema: TableSchema) -> tuple[list[Cells], list[Cells]]:
    """The old and the new tuples of all rows; an empty list where no row has one."""
    everywhere = np.arange(len(kinds))
    marker = _check_heads(payloads, kinds, schema.relation)
    tuples_at = payloads.starts + (_TUPLE_AT + 1)
    with_old = np.flatnonzero((kinds != _TRUNCATE) & (marker != _NEW_ROW))
    with_new = np.flatnonzero((kinds == _INSERT) | (kinds == _UPDATE))
    ends = np.where(kinds == _TRUNCATE, payloads.ends, tuples_at)
    old: list[Cells] = []
    if len(with_old):
        old, ends[with_old] = walk(payloads, with_old, tuples_at[with_old], len(schema.columns))
        both = with_old[kinds[with_old] == _UPDATE]
        _require_at(payloads, both, ends[both], _NEW_ROW, "no new row follows its old row")
        ends[both] += 1
    new: list[Cells] = []
    if len(with_new):
        new, ends[with_new] = walk(payloads, with_new, ends[with_new], len(schema.columns))
    require(ends == payloads.ends, everywhere, "it does not end with its last tuple")
    return old, new


def _check_heads(payloads: Payloads, kinds: Any, relation: int) -> Any:
    """Check message byte and relation of every row; returns the byte that says which tuple comes first."""
    rows = np.arange(len(kinds))
    require(payloads.ends - payloads.starts > _TUPLE_AT, rows, "it is too short")
    expected = _MESSAGE_BYTE[kinds]
    require((payloads.data[payloads.starts] == expected) & (expected != 0), rows, "it is another kind of message")
    marker = payloads.data[payloads.starts + _TUPLE_AT]
    is_old = (marker == _OLD_KEY) | (marker == _OLD_ROW)
    is_new = marker == _NEW_ROW
    truncate = kinds == _TRUNCATE
    require(truncate | (payloads.uint32(payloads.starts + _RELATION_AT) == relation), rows, "it is of another relation")
    fits = np.where(kinds == _INSERT, is_new, np.where(kinds == _DELETE, is_old, is_old | is_new))
    require(truncate | fits, rows, "its first tuple is not of a known kind")
    return marker


@cache
def _ops_by_kind() -> Any:
    # Not when the module is loaded: Arrow loads pandas for its first array, and a process that captures needs neither.
    return pa.array([_OPS.get(kind) for kind in range(256)], pa.string())


def _metadata(records: Any) -> list[Any]:
    return [
        _ops_by_kind().take(records.column("kind")),
        records.column("seq"),
        records.column("position"),
        records.column("commit_ordinal").cast(pa.int64()),
        records.column("xid").cast(pa.int64()),
        records.column("commit_time_us").view(METADATA[COMMIT_TS]),
    ]


def _nothing(schema: TableSchema, count: int) -> list[Any]:
    return [pa.nulls(count, arrow_type(column.type)) for column in schema.columns]


def _columns(payloads: Payloads, tuples: list[Cells], schema: TableSchema) -> tuple[list[Any], Texts]:
    """Each column's values, and the texts of those that it cannot hold."""
    arrays, texts = [], {}
    for cells, column in zip(tuples, schema.columns, strict=True):
        values, odd = cast_column(cells.text(payloads), schema, column)
        arrays.append(values)
        if odd is not None:
            texts[column.name] = odd
    return arrays, texts


def cast_column(text: Any, schema: TableSchema, column: Column) -> tuple[Any, Any | None]:
    """A column's Postgres text as typed values, and the texts of those that it cannot hold. An error names the table
    and the column."""
    try:
        return values.cast(text, column.type)
    except DefiniteError as error:
        message = f"{schema.table} column {column.name}: {error.message}"
        again = f"tailrace tables resync LAKE {schema.table}"
        raise DefiniteError(
            message, f"{error.hint}; then: {again}" if error.hint else again, str(schema.table)
        ) from None


def kept_texts(texts: Texts, schema: TableSchema, count: int) -> Any | None:
    """One map a row; None where no row has such a text. `TextKeyError` where a row could not be told by its key."""
    odd = [schema.column(name) for name in schema.key if name in texts]
    if odd:
        shown = texts[odd[0].name].drop_null()[0].as_py()
        reason = f"column {odd[0].name} is in the key and is text now: the value '{shown}' has no exact {odd[0].type}"
        raise TextKeyError.found(schema.table, reason, schema.relation, [column.identity for column in odd])
    return maps_of(texts, count) if texts else None


def _before(columns: list[Any], old: list[Cells], type_: Any, count: int) -> Any:
    if not old:
        return pa.nulls(count, type_)
    return pa.StructArray.from_arrays(columns, fields=list(type_), mask=pa.array(old[0].flags == NO_TUPLE))


def _unchanged(new: list[Cells], schema: TableSchema, count: int) -> Any:
    """For each row the names of its unchanged columns, null where there are none."""
    if not any((cells.flags == UNCHANGED).any() for cells in new if not cells.are_texts):
        return pa.nulls(count, pa.list_(pa.string()))
    is_unchanged = np.stack([cells.flags == UNCHANGED for cells in new], axis=1)
    counts = is_unchanged.sum(axis=1)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    names = pa.array(schema.names, pa.string()).take(pa.array(np.nonzero(is_unchanged)[1]))
    return pa.ListArray.from_arrays(pa.array(offsets), names, mask=pa.array(counts == 0))


def _require_at(payloads: Payloads, rows: Positions, at: Positions, byte: int, reason: str) -> None:
    require(at < payloads.ends[rows], rows, reason)
    require(payloads.data[at] == byte, rows, reason)
