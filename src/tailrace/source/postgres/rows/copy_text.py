"""The text of a COPY as typed columns.

Postgres's text format costs the server a fifth less than its CSV, and no value has a tab or a line end in it: those are
escaped, and so is the backslash. A null is `\\N`, which no value is, as its backslash would be escaped.

Values become what the stream's casts would make of them. Those of the usual forms are read by compiled code
(`copy_kernel`); the casts themselves read the others, and the columns that have had one. To compile takes seconds,
once: `python -m tailrace.source.postgres.rows.copy_text` does it ahead, and `make setup` runs that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tailrace.errors import DefiniteError
from tailrace.model.change import row_schema
from tailrace.model.rows.exact import with_exact
from tailrace.model.rows.lake_types import arrow_type
from tailrace.model.table import TableId, TableSchema
from tailrace.source.postgres.rows import copy_kernel as kernel
from tailrace.source.postgres.rows.copy_out import Portion
from tailrace.source.postgres.values.row_changes import cast_column, kept_texts

BLOCK_BYTES = 1 << 20
"""So much is read at a time, a larger row alone: it then stays in the processor's cache."""
TEXTS_BYTES_MAX = 128 << 20
"""Each column of texts has room for a whole block. Of a table with hundreds of them, blocks are smaller."""

_FIXED = {
    "boolean": (kernel.BOOLEAN, 1),
    "date": (kernel.DATE, 4),
    "timestamp_ntz": (kernel.TIMESTAMP, 8),
    "timestamp": (kernel.TIMESTAMP_UTC, 8),
}
_END_BYTES = 4
"""Of a text: where it ends among the texts of its column."""
_DECIMAL_DIGITS_MAX = 18


class RowReader:
    """Reads the rows of a table that a COPY sends. For one thread."""

    def __init__(self, schema: TableSchema, block_bytes: int = BLOCK_BYTES) -> None:
        self._schema = schema
        self._columns = _columns([column.type for column in schema.columns])
        texts = int(np.count_nonzero(self._columns["kind"] == kernel.TEXT))
        self._bytes_max = min(block_bytes, TEXTS_BYTES_MAX // max(1, texts))
        """What rows that are read together may have of bytes."""
        self._out = self._room()

    def read(self, portion: Portion) -> Iterator[pa.RecordBatch]:
        """The rows with the schema's columns, in batches. A definite error where they cannot be understood."""
        sent, at, columns = kernel.with_words(portion.buffer), portion.begin, self._columns
        while at < portion.end:
            columns["used"] = 0
            rows, at, column = kernel.read(sent, at, portion.end, columns, self._out, self._bytes_max)
            if rows:
                yield self._taken(rows)
            if column == kernel.MALFORMED:
                message = f"{self._schema.table}: the server sent a row that does not have the table's columns"
                raise DefiniteError(message, table=str(self._schema.table))
            if column != kernel.ALL_UNDERSTOOD:
                # From here on the casts read this column.
                columns[column]["kind"], columns[column]["width"] = kernel.TEXT, _END_BYTES
                self._out = self._room()
            elif not rows:
                # The next row is longer than the room for all.
                self._bytes_max = 1 + int.from_bytes(portion.buffer[at + 1 : at + kernel.HEAD_BYTES])
                self._out = self._room()

    def _room(self) -> Any:
        """Where the columns' values go, of rows with `_bytes_max` bytes together."""
        columns = self._columns
        fixed = columns["width"] * kernel.ROWS_MAX + 2 * kernel.SLACK
        texts = np.where(columns["kind"] == kernel.TEXT, self._bytes_max + kernel.SLACK, 0)
        ends = np.cumsum(kernel.ROWS_MAX + fixed + texts)
        columns["texts_at"] = ends - texts
        columns["values_at"] = ends - texts - fixed + kernel.SLACK
        columns["valid_at"] = ends - texts - fixed - kernel.ROWS_MAX
        data = np.empty(int(ends[-1] if len(ends) else 0) + kernel.SLACK, np.uint8)
        for column in columns:
            data[column["valid_at"] : column["values_at"]] = 1
            data[column["values_at"] - _END_BYTES : column["values_at"]] = 0
        return kernel.with_words(data)

    def _taken(self, rows: int) -> pa.RecordBatch:
        arrays, texts = [], {}
        for column, read in zip(self._schema.columns, self._columns, strict=True):
            values, odd = self._array(read, arrow_type(column.type), rows), None
            if pa.types.is_binary(values.type):
                values, odd = cast_column(values, self._schema, column)
            arrays.append(values)
            if odd is not None:
                texts[column.name] = odd
        if not arrays:
            return pa.RecordBatch.from_struct_array(pa.array([{}] * rows, pa.struct([])))
        found = pa.RecordBatch.from_arrays(arrays, schema=row_schema(self._schema))
        return with_exact(found, kept_texts(texts, self._schema, rows))

    def _array(self, column: Any, type_: Any, rows: int) -> Any:
        """A column of values, or of texts that are to be cast."""
        validity, data = None, self._out[0]
        if column["has_nulls"]:
            is_valid = data[column["valid_at"] :][: kernel.ROWS_MAX]
            validity = _bits(is_valid[:rows])
            is_valid[:], column["has_nulls"] = 1, 0
        begin, width = int(column["values_at"]), int(column["width"])
        if column["kind"] == kernel.TEXT:
            is_ascii, column["has_others"] = not column["has_others"], 0
            ends = _copied(data, begin - _END_BYTES, _END_BYTES * (rows + 1))
            texts = _copied(data, int(column["texts_at"]), int(np.frombuffer(ends, np.int32)[-1]))
            type_ = type_ if pa.types.is_string(type_) and is_ascii else pa.binary()
            return pa.Array.from_buffers(type_, rows, [validity, ends, texts])
        if column["kind"] == kernel.BOOLEAN:
            return pa.Array.from_buffers(type_, rows, [validity, _bits(data[begin : begin + rows])])
        return pa.Array.from_buffers(type_, rows, [validity, _copied(data, begin, width * rows)])


def _copied(data: Any, begin: int, count: int) -> Any:
    return pa.py_buffer(data[begin : begin + count].tobytes())


def _bits(flags: Any) -> Any:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))


def _columns(lake: Sequence[str]) -> Any:
    columns = np.zeros(len(lake), kernel.COLUMN)
    for column, each in zip(columns, lake, strict=True):
        column["kind"], column["width"], column["scale"], column["limit"] = _form(each)
        column["delimiter"] = ord("\t")
    columns["delimiter"][-1:] = ord("\n")
    return columns


def _form(lake: str) -> tuple[int, int, int, int]:
    """Kind, width, scale and limit."""
    type_ = arrow_type(lake)
    if pa.types.is_integer(type_):
        return kernel.INTEGER, type_.bit_width // 8, 0, 2 ** (type_.bit_width - 1) - 1
    if pa.types.is_decimal(type_) and type_.scale <= _DECIMAL_DIGITS_MAX:
        return kernel.DECIMAL, type_.bit_width // 8, type_.scale, 10 ** min(type_.precision, _DECIMAL_DIGITS_MAX) - 1
    return *_FIXED.get(lake, (kernel.TEXT, _END_BYTES)), 0, 0


def load_compiled() -> None:
    """Have the compiled code in memory, compiled where it never was."""
    row, slack = b"d\0\0\0\5\n", bytes(kernel.SLACK)
    sent = Portion(bytearray(slack + row + slack), len(slack), len(slack + row))
    next(RowReader(TableSchema(TableId("", ""), 0, (), ())).read(sent))
    kernel.rows_end(np.frombuffer(sent.buffer, np.uint8), sent.begin, sent.end)


if __name__ == "__main__":
    load_compiled()
