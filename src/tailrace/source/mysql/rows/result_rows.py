"""Rows that a query finds, as columns: the values that the binlog has of them, to the last digit.

The driver sends the query and reads what describes its result. From there on its packets are ours, and they are read in
large pieces. A query must select the `expressions` of the table's columns, because the server prints some values with
fewer digits than they have.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from pymysql.connections import Connection
from pymysql.err import OperationalError

from tailrace.errors import DefiniteError, TextKeyError
from tailrace.model.change import row_schema
from tailrace.model.rows.exact import EXACT, maps_of, with_exact
from tailrace.model.table import Column, TableSchema
from tailrace.source.mysql.rows import packet_kernel as kernel
from tailrace.source.mysql.rows.text_casts import cast_text
from tailrace.source.mysql.server.connection import of_driver
from tailrace.source.mysql.values.column_type import ColumnType
from tailrace.source.mysql.values.images import ColumnCells

READ_BYTES = 1 << 20
ROWS_MAX = 8192
_QUERY = 0x03
_ERROR = 0xFF


def quoted(name: str) -> str:
    """A name in a statement."""
    return "`" + name.replace("`", "``") + "`"


def expressions(schema: TableSchema) -> str:
    """What to select of a table, in the order of its columns."""
    return ", ".join(_expression(column) for column in schema.columns)


def _expression(column: Column) -> str:
    name, type_ = quoted(column.in_source), ColumnType.parse(column.source_type)
    if type_.name in ("float", "double"):
        # As it is, a float is printed with six digits.
        return f"{name} + 0e0"
    # A number, and not the bytes of one.
    return f"{name} + 0" if type_.name == "bit" else name


def read_rows(
    connection: Connection[Any], query: str, schema: TableSchema, read_bytes: int = READ_BYTES
) -> Iterator[pa.RecordBatch]:
    """The rows as `row_schema(schema)`, some with `EXACT`. The connection is good for other queries when all were read,
    and closed if that ends early."""
    _begin(connection, query, len(schema.columns))
    reader = _ResultReader(schema)
    try:
        while not reader.is_done:
            piece = connection._rfile.read1(read_bytes)
            if not piece:
                raise OperationalError(2013, "the server closed the connection")
            yield from reader.take(piece)
    finally:
        if not reader.is_done:
            connection.close()


class _ResultReader:
    """Cuts what comes into rows."""

    def __init__(self, schema: TableSchema) -> None:
        self.is_done = False
        """The end has come."""
        self._schema = schema
        self._buffer = bytearray()
        self._needed = 0
        """With fewer bytes the first row is not whole, and none of them are looked at."""
        shape = (len(schema.columns), ROWS_MAX)
        self._begins, self._lengths = np.zeros(shape, np.int64), np.zeros(shape, np.int64)

    def take(self, piece: bytes) -> Iterator[pa.RecordBatch]:
        """The rows that are whole now."""
        self._buffer += piece
        if len(self._buffer) < self._needed:
            return
        data, at, is_all = np.frombuffer(bytes(self._buffer), np.uint8), 0, False
        while not is_all and not self.is_done:
            rows, at, why = kernel.read(data, at, self._begins, self._lengths)
            if rows:
                pairs = zip(self._begins[:, :rows], self._lengths[:, :rows], strict=True)
                yield _batch([ColumnCells(data, *pair) for pair in pairs], self._schema)
            if why == kernel.MALFORMED:
                raise DefiniteError(f"{self._schema.table}: the server sent a row that does not have its columns")
            is_all = why == kernel.ALL_READ and rows < ROWS_MAX
            found = _other_packet(self._buffer, at) if why == kernel.NO_ROW_PACKET else None
            if found is not None:
                row, at = found
                self.is_done = row is None
                if row is not None:
                    yield _one(row, self._schema)
            elif why == kernel.NO_ROW_PACKET:
                is_all = True
        del self._buffer[:at]
        self._needed = _bytes_of_first(self._buffer)


def _bytes_of_first(buffer: bytearray) -> int:
    """How many bytes the first row takes, or at least as many, as far as that is known."""
    at = 0
    while len(buffer) >= at + kernel.HEAD_BYTES:
        length = int.from_bytes(buffer[at : at + 3], "little")
        at += kernel.HEAD_BYTES + length
        if length < kernel.PACKET_BYTES_MAX:
            return at
    return at + kernel.HEAD_BYTES


def _begin(connection: Connection[Any], query: str, columns: int) -> None:
    """Send the query and read what describes its result."""
    connection._execute_command(_QUERY, query.encode())
    first = connection._read_packet()
    if first.read_length_encoded_integer() != columns:
        connection.close()
        raise DefiniteError(f"the server sent another number of columns than {columns}", "report it")
    while not connection._read_packet().is_eof_packet():
        pass


def _other_packet(buffer: bytearray, at: int) -> tuple[bytes | None, int] | None:
    """A row that takes several packets, and where it ends; no row at the end of all; None where it is not whole yet. An
    error of the server is raised."""
    whole, begin = bytearray(), at
    while True:
        if len(buffer) < begin + kernel.HEAD_BYTES:
            return None
        length = int.from_bytes(buffer[begin : begin + 3], "little")
        end = begin + kernel.HEAD_BYTES + length
        if len(buffer) < end:
            return None
        whole += buffer[begin + kernel.HEAD_BYTES : end]
        begin = end
        if length < kernel.PACKET_BYTES_MAX:
            break
    if whole[0] == _ERROR:
        code = struct.unpack_from("<H", whole, 1)[0]
        raise of_driver(OperationalError(code, whole[9:].decode(errors="replace")), "the server ended a query")
    return (None, begin) if len(whole) < 9 else (bytes(whole), begin)


def _one(row: bytes, schema: TableSchema) -> pa.RecordBatch:
    """A row of more than one packet."""
    begins, lengths = [], []
    at = 0
    for _ in schema.columns:
        first = row[at]
        more = {0xFC: 2, 0xFD: 3, 0xFE: 8}.get(first, 0)
        size = int.from_bytes(row[at + 1 : at + 1 + more], "little") if more else first
        is_null = first == 0xFB
        at += 1 + more
        begins.append(at)
        lengths.append(-1 if is_null else size)
        at += 0 if is_null else size
    data = np.frombuffer(row, np.uint8)
    pairs = zip(begins, lengths, strict=True)
    return _batch([ColumnCells(data, np.array([begin]), np.array([length])) for begin, length in pairs], schema)


def _batch(cells: list[ColumnCells], schema: TableSchema) -> pa.RecordBatch:
    arrays, texts = [], {}
    for each, column in zip(cells, schema.columns, strict=True):
        try:
            values, odd = cast_text(each, ColumnType.parse(column.source_type), column.type)
        except DefiniteError as error:
            message = f"{schema.table} column {column.name}: {error.message}"
            raise DefiniteError(message, error.hint, str(schema.table)) from None
        arrays.append(values)
        if odd is not None:
            texts[column.name] = odd
    odd_keys = [schema.column(name) for name in schema.key if name in texts]
    if odd_keys:
        shown = texts[odd_keys[0].name].drop_null()[0].as_py()
        reason = f"column {odd_keys[0].name} is in the key and is text now: '{shown}' has no exact {odd_keys[0].type}"
        raise TextKeyError.found(schema.table, reason, schema.relation, [column.identity for column in odd_keys])
    found = pa.RecordBatch.from_arrays(arrays, schema=row_schema(schema))
    return with_exact(found, maps_of(texts, len(arrays[0])) if texts else None, EXACT)
