"""Logged rows of the binlog, decoded to typed Arrow columns, a batch at a time.

    log records of one relation and one shape ──▶ OP SEQ … BEFORE UNCHANGED, then the table's columns

A value that the server left out of the new row, because its row image is not full, is taken from the old row; where the
old row lacks it too, it is null and its column is named in `UNCHANGED`. A row that is inserted without all of its
columns says nothing of their defaults: then the table is copied again. Bytes that are not what the shape says are a
definite error, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tailrace.errors import DefiniteError, ResyncError, TextKeyError
from tailrace.model.change import BEFORE, COMMIT_TS, METADATA, change_schema
from tailrace.model.kind import Kind
from tailrace.model.rows.exact import EXACT, EXACT_BEFORE, maps_of, with_exact
from tailrace.model.table import Column, TableSchema
from tailrace.source.mysql.values.casts import cast
from tailrace.source.mysql.values.column_type import ColumnType
from tailrace.source.mysql.values.images import Array, ColumnCells, Images, MalformedRowError

_OPS: dict[int, str] = {Kind.INSERT: "c", Kind.UPDATE: "u", Kind.DELETE: "d", Kind.TRUNCATE: "t"}
_INSERT, _UNSENT = np.uint8(Kind.INSERT), np.uint8(Kind.UNSENT)
Texts = Mapping[str, Any]
"""By column, the texts of values that it cannot hold; null in all other rows."""


def decode(records: Any, schema: TableSchema) -> Any:
    """Decode a batch of log records, all of the schema's relation and of this version of its shape.

    One row out for each row in, in the same order. Deletes and truncates have no new row: their columns are null."""
    kinds = records.column("kind").to_numpy(zero_copy_only=False)
    unsent = np.flatnonzero(kinds == _UNSENT)
    if len(unsent):
        raise ResyncError.of(schema.table, records.column("payload")[int(unsent[0])].as_py().decode())
    types = [ColumnType.parse(column.source_type) for column in schema.columns]
    payload = records.column("payload")
    payload = payload.combine_chunks() if isinstance(payload, pa.ChunkedArray) else payload
    try:
        images = Images.of(payload, kinds, [type_.width for type_ in types])
    except MalformedRowError as error:
        place = records.column("position")[error.row].as_py()
        raise DefiniteError(
            f"{schema.table}: the change at {place} of the log cannot be decoded: {error.reason}",
            "the log or the recorded shape of the table is damaged; copy the table again",
            table=str(schema.table),
        ) from None
    _require_whole_inserts(images, kinds, schema)
    new = [cells.filled_from(before) for cells, before in zip(images.new, images.old, strict=True)]
    return _changes(records, schema, (images.old, new), types)


def _changes(
    records: Any, schema: TableSchema, images: tuple[list[ColumnCells], list[ColumnCells]], types: list[Any]
) -> Any:
    names = change_schema(schema)
    old, new = images
    count = len(records)
    before, old_texts = _columns(old, schema, types)
    after, new_texts = _columns(new, schema, types)
    # Without an old row there is none, and not one of nulls.
    no_row = pa.array(~old[0].is_row) if old else None
    rows = pa.StructArray.from_arrays(before, fields=list(names.field(BEFORE).type), mask=no_row)
    arrays = [*_metadata(records), rows, _unchanged(new, schema, count), *after]
    found = pa.RecordBatch.from_arrays(arrays, schema=names)
    found = with_exact(found, _kept_texts(new_texts, schema, count), EXACT)
    return with_exact(found, _kept_texts(old_texts, schema, count), EXACT_BEFORE)


def _require_whole_inserts(images: Images, kinds: Array, schema: TableSchema) -> None:
    for cells, column in zip(images.new, schema.columns, strict=True):
        if cells.is_absent.any() and (cells.is_absent & (kinds == _INSERT)).any():
            reason = f"a row was inserted whose {column.in_source} the binlog left out; set binlog_row_image = FULL"
            raise ResyncError.of(schema.table, reason)


def _metadata(records: Any) -> list[Any]:
    ops = pa.array([_OPS.get(kind) for kind in range(256)], pa.string())
    return [
        ops.take(_in_one(records.column("kind"))),
        _in_one(records.column("seq")),
        _in_one(records.column("position")),
        _in_one(records.column("commit_ordinal")).cast(pa.int64()),
        _in_one(records.column("xid")).cast(pa.int64()),
        _in_one(records.column("commit_time_us")).view(METADATA[COMMIT_TS]),
    ]


def _in_one(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _columns(cells: list[ColumnCells], schema: TableSchema, types: list[ColumnType]) -> tuple[list[Any], Texts]:
    """Each column's values, and the texts of those that it cannot hold."""
    arrays, texts = [], {}
    for each, column, type_ in zip(cells, schema.columns, types, strict=True):
        values, odd = _cast_column(each, schema, column, type_)
        arrays.append(values)
        if odd is not None:
            texts[column.name] = odd
    return arrays, texts


def _cast_column(cells: ColumnCells, schema: TableSchema, column: Column, type_: ColumnType) -> tuple[Any, Any | None]:
    """An error names the table and the column."""
    try:
        return cast(cells, type_, column.type)
    except DefiniteError as error:
        message = f"{schema.table} column {column.name}: {error.message}"
        raise DefiniteError(message, error.hint, str(schema.table)) from None


def _kept_texts(texts: Texts, schema: TableSchema, count: int) -> Any | None:
    """One map a row; None where no row has such a text. `TextKeyError` where a row could not be told by its key."""
    odd = [schema.column(name) for name in schema.key if name in texts]
    if odd:
        shown = texts[odd[0].name].drop_null()[0].as_py()
        reason = f"column {odd[0].name} is in the key and is text now: the value '{shown}' has no exact {odd[0].type}"
        raise TextKeyError.found(schema.table, reason, schema.relation, [column.identity for column in odd])
    return maps_of(texts, count) if texts else None


def _unchanged(new: list[ColumnCells], schema: TableSchema, count: int) -> Any:
    """For each row the names of columns that it left out, null where there are none."""
    if not any(cells.is_absent.any() for cells in new):
        return pa.nulls(count, pa.list_(pa.string()))
    is_unchanged = np.stack([cells.is_absent for cells in new], axis=1)
    counts = is_unchanged.sum(axis=1)
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)
    names = pa.array(schema.names, pa.string()).take(pa.array(np.nonzero(is_unchanged)[1]))
    return pa.ListArray.from_arrays(pa.array(offsets), names, mask=pa.array(counts == 0))
