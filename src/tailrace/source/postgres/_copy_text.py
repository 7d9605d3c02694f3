"""The text of a COPY as typed columns.

Postgres's text format costs the server a fifth less than its CSV. Its rows are read as columns that are separated by
tabs, because no value has a tab or a line end in it: those are escaped, and so is the backslash. A null is `\\N`, which
no value is, as its backslash would be escaped. What is left is to take the escapes out of the texts that have some:

    ␣␣␣␣⇥7⇥a\\tb⇥\\N⏎    ->    7, "a⇥b", null

Values become what the stream's casts would make of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv

from tailrace.errors import DefiniteError
from tailrace.model.change import row_schema
from tailrace.model.exact import with_exact
from tailrace.model.lake_types import arrow_type, element_type, is_limited
from tailrace.model.table import TableSchema
from tailrace.source.postgres._copy_out import Portion
from tailrace.source.postgres._pgoutput import cast_column, kept_texts

BLOCK_BYTES = 1 << 20
"""Rows are parsed so many at a time: what is worked on then stays in the processor's cache."""
_CAST_LATER = frozenset({"binary", "boolean", "timestamp", "timestamp_ntz"})
"""Lake types whose text Arrow's reader would take differently than the casts, or not at all."""
_BACKSLASH = ord("\\")
_ESCAPED = np.arange(256, dtype=np.uint8)
_ESCAPED[np.frombuffer(b"bfnrtv", np.uint8)] = np.frombuffer(b"\b\f\n\r\t\v", np.uint8)
"""What a byte after a backslash stands for."""


def parsed(portion: Portion, schema: TableSchema) -> Iterator[pa.RecordBatch]:
    """The rows with the schema's columns, in batches. A definite error where they cannot be understood."""
    if not schema.columns:
        yield pa.RecordBatch.from_struct_array(pa.array([{}] * portion.rows, pa.struct([])))
        return
    table = _read(portion, [column.type for column in schema.columns])
    if table.num_rows != portion.rows:
        message = f"{schema.table}: {portion.rows} rows were sent, {table.num_rows} were understood"
        raise DefiniteError(message, table=str(schema.table))
    for batch in table.to_batches():
        yield _cast(batch, schema)


def _cast(batch: pa.RecordBatch, schema: TableSchema) -> pa.RecordBatch:
    arrays, texts = [], {}
    for column, read in zip(schema.columns, batch.columns, strict=True):
        values, odd = unescaped(read), None
        if pa.types.is_binary(values.type):
            values, odd = cast_column(values, schema, column)
        arrays.append(values)
        if odd is not None:
            texts[column.name] = odd
    rows = pa.RecordBatch.from_arrays(arrays, schema=row_schema(schema))
    return with_exact(rows, kept_texts(texts, schema, batch.num_rows))


def _read(portion: Portion, lake: Sequence[str]) -> pa.Table:
    """Values of these lake types, or their texts, to be cast: where Arrow's reader met one that it did not understand,
    of the types that may have such values; else of all, so that the casts say which it is."""
    typed = [pa.binary() if each in _CAST_LATER or element_type(each) else arrow_type(each) for each in lake]
    guarded = [pa.binary() if is_limited(each) else type_ for each, type_ in zip(lake, typed, strict=True)]
    for types in (typed, guarded):
        try:
            return _read_as(portion, types)
        except pa.ArrowInvalid:
            continue
    return _read_as(portion, [pa.binary()] * len(lake))


def _read_as(portion: Portion, types: Sequence[pa.DataType]) -> pa.Table:
    """Values of these types, parsed as the casts would; text as it is sent where the type is binary."""
    names = [str(index) for index in range(len(types))]
    return pcsv.read_csv(
        pa.py_buffer(portion.text),
        read_options=pcsv.ReadOptions(
            use_threads=False,
            column_names=["ignored", *names],
            block_size=max(BLOCK_BYTES, portion.row_bytes_max + 1),
        ),
        parse_options=pcsv.ParseOptions(delimiter="\t", quote_char=False, ignore_empty_lines=False),
        convert_options=pcsv.ConvertOptions(
            column_types=dict(zip(names, types, strict=True)),
            include_columns=names,
            null_values=[r"\N"],
            strings_can_be_null=True,
        ),
    )


def unescaped(values: Any) -> Any:
    """Texts without their escapes; values of other types as they are."""
    if not (pa.types.is_binary(values.type) or pa.types.is_string(values.type)):
        return values
    validity, offsets_buffer, data_buffer = values.buffers()
    if data_buffer is None:
        return values
    offsets = np.frombuffer(offsets_buffer, np.int32)[values.offset : values.offset + len(values) + 1]
    data = np.frombuffer(data_buffer, np.uint8)[offsets[0] : offsets[-1]]
    at = np.flatnonzero(data == _BACKSLASH)
    if not len(at):
        return values
    escapes = _first_of_pairs(at)
    kept = np.ones(len(data), bool)
    kept[escapes] = False
    text = data.copy()
    text[escapes + 1] = _ESCAPED[data[escapes + 1]]
    begins = offsets - offsets[0]
    begins = begins - np.searchsorted(escapes, begins).astype(np.int32)
    buffers = [validity, pa.py_buffer(begins.astype(np.int32)), pa.py_buffer(text[kept])]
    if values.offset:
        buffers[0] = None if validity is None else pa.array(values.is_valid()).buffers()[1]
    return pa.Array.from_buffers(values.type, len(values), buffers, values.null_count)


def _first_of_pairs(at: np.ndarray) -> np.ndarray:
    """Which of these backslashes escape what follows them: of neighbours, every other one. No text ends between a
    backslash and what it escapes, so neighbours may belong to two texts."""
    is_first = np.ones(len(at), bool)
    is_first[1:] = np.diff(at) > 1
    run_begins = np.maximum.accumulate(np.where(is_first, np.arange(len(at)), 0))
    found: np.ndarray = at[(np.arange(len(at)) - run_begins) % 2 == 0]
    return found
