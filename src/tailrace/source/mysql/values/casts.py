"""Values of the binlog to Arrow, a column at a time.

A value never becomes a neighbouring one. One that its column's lake type cannot hold is null, and its text, as the
server writes it, is given beside it (`model.rows.exact`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.errors import DefiniteError
from tailrace.model.rows.lake_types import arrow_type
from tailrace.source.mysql.values import json_text, row_kernel, temporals
from tailrace.source.mysql.values.charsets import to_utf8
from tailrace.source.mysql.values.column_type import BLOBS, GEOMETRIES, INTEGERS, TEXTS, ColumnType
from tailrace.source.mysql.values.images import Array, ColumnCells

_UNSIGNED_BITS = 64
_FLOAT_BYTES = 4


def cast(cells: ColumnCells, type_: ColumnType, lake: str) -> tuple[Any, Any | None]:
    """A column's values as an array of the lake type's Arrow type, and the texts of those that it cannot hold: null in
    all other rows, None where there are none. The lake type is the type's own, or `string` for any."""
    values, odd = _READERS[type_.name](cells, type_)
    if lake == type_.lake_type:
        return values, odd
    if lake != "string":
        raise DefiniteError(f"a column of type {type_} cannot be {lake}", "copy the table again")
    if type_.name in ("date", "datetime", "timestamp"):
        return temporals.date_texts(values, odd, type_), None
    return pc.cast(values, pa.string()), None


Cast = tuple[Any, Any | None]


def _integers(cells: ColumnCells, type_: ColumnType) -> Cast:
    found = cells.numbers()
    bits = 8 * INTEGERS[type_.name]
    if type_.is_unsigned and bits == _UNSIGNED_BITS:
        return _wide(found, cells), None
    signed = found.astype(np.int64)
    if not type_.is_unsigned and bits < _UNSIGNED_BITS:
        spare = _UNSIGNED_BITS - bits
        signed = signed << spare >> spare
    return _numbers(signed, cells, type_), None


def _bits(cells: ColumnCells, type_: ColumnType) -> Cast:
    found = cells.numbers(is_big_endian=True)
    if type_.size == 1:
        return pa.array(found != 0, mask=cells.mask), None
    return (_wide(found, cells) if type_.size == _UNSIGNED_BITS else _numbers(found, cells, type_)), None


def _numbers(values: Array, cells: ColumnCells, type_: ColumnType) -> Any:
    target = arrow_type(type_.lake_type)
    return pa.array(values.astype(target.to_pandas_dtype()), mask=cells.mask)


def _wide(values: Array, cells: ColumnCells) -> Any:
    """Unsigned numbers of 64 bits: as decimals, whose high half is zero."""
    halves = np.zeros((len(values), 2), np.uint64)
    halves[:, 0] = values
    return _decimal_array(halves, cells, 20, 0)


def _floats(cells: ColumnCells, type_: ColumnType) -> Cast:
    bits = cells.numbers()
    values = bits.astype(np.uint32).view(np.float32) if type_.name == "float" else bits.view(np.float64)
    return pa.array(values, mask=cells.mask), None


def _decimals(cells: ColumnCells, type_: ColumnType) -> Cast:
    if type_.lake_type == "string":
        found = [
            None if each is None else json_text.decimal_text(each, type_.size, type_.scale)
            for each in cells.bytes().to_pylist()
        ]
        return pa.array(found, pa.string()), None
    halves = np.zeros((len(cells), 2), np.uint64)
    digits = type_.size - type_.scale, type_.scale
    row_kernel.decimals(cells.data, cells.begins, cells.lengths, digits, halves)
    return _decimal_array(halves, cells, type_.size, type_.scale), None


def _decimal_array(halves: Array, cells: ColumnCells, precision: int, scale: int) -> Any:
    mask = cells.mask
    valid = None if mask is None else pa.py_buffer(np.packbits(~mask, bitorder="little"))
    return pa.Array.from_buffers(pa.decimal128(precision, scale), len(cells), [valid, pa.py_buffer(halves)])


def _texts(cells: ColumnCells, type_: ColumnType) -> Cast:
    return to_utf8(cells.bytes(), type_.charset), None


def _bytes(cells: ColumnCells, type_: ColumnType) -> Cast:
    return cells.bytes(), None


def _padded(cells: ColumnCells, type_: ColumnType) -> Cast:
    """The server leaves out the zeros at the end of a `binary(n)`."""
    if (cells.lengths[cells.is_there] == type_.size).all():
        return cells.bytes(), None
    fixed = pa.binary(type_.size)
    whole = [None if each is None else each.ljust(type_.size, b"\0") for each in cells.bytes().to_pylist()]
    return pa.array(whole, fixed).cast(pa.binary()), None


def _enums(cells: ColumnCells, type_: ColumnType) -> Cast:
    """The number of a label; 0 is what the server puts where a value was none, an empty text."""
    found = cells.numbers().astype(np.int64)
    if found.max(initial=0) > len(type_.labels):
        raise DefiniteError(f"a value of type {type_} has no label", "copy the table again")
    labels = pa.array(["", *type_.labels], pa.string())
    return labels.take(pa.array(found, mask=cells.mask)), None


def _sets(cells: ColumnCells, type_: ColumnType) -> Cast:
    """A bit for each label."""
    different, which = np.unique(cells.numbers(), return_inverse=True)
    if len(type_.labels) < _UNSIGNED_BITS and int(different.max(initial=0)) >> len(type_.labels):
        raise DefiniteError(f"a value of type {type_} has no label", "copy the table again")
    texts = [
        ",".join(label for place, label in enumerate(type_.labels) if bits >> place & 1) for bits in different.tolist()
    ]
    return pa.array(texts, pa.string()).take(pa.array(which.reshape(-1), mask=cells.mask)), None


def _documents(cells: ColumnCells, type_: ColumnType) -> Cast:
    return pa.array(json_text.texts(cells.bytes()), pa.string()), None


def vectors(cells: ColumnCells, type_: ColumnType) -> Cast:
    """Numbers of four bytes, one after another."""
    found = cells.bytes()
    lengths = np.where(cells.is_there, cells.lengths, 0)
    if (lengths % _FLOAT_BYTES).any():
        raise DefiniteError("a vector ends inside a number", "copy the table again")
    offsets = np.concatenate(([0], np.cumsum(lengths // _FLOAT_BYTES))).astype(np.int32)
    begin = np.frombuffer(found.buffers()[1] or bytes(4), np.int32)[found.offset]
    data = np.frombuffer(found.buffers()[2] or b"", np.uint8)[begin : begin + int(lengths.sum())]
    items = pa.array(np.frombuffer(data.tobytes(), "<f4"))
    mask = None if cells.mask is None else pa.array(cells.mask)
    return pa.ListArray.from_arrays(pa.array(offsets), items, arrow_type("array<float>"), mask=mask), None


_READERS: dict[str, Callable[[ColumnCells, ColumnType], Cast]] = {
    **dict.fromkeys(INTEGERS, _integers),
    **dict.fromkeys(("float", "double"), _floats),
    **dict.fromkeys(("char", "varchar", *TEXTS), _texts),
    **dict.fromkeys(("varbinary", *BLOBS, *GEOMETRIES), _bytes),
    "binary": _padded,
    "bit": _bits,
    "decimal": _decimals,
    "enum": _enums,
    "set": _sets,
    "json": _documents,
    "vector": vectors,
    "date": lambda cells, _: temporals.dates(cells),
    "datetime": temporals.datetimes,
    "timestamp": temporals.timestamps,
    "time": lambda cells, type_: (temporals.times(cells, type_), None),
    "year": lambda cells, _: (temporals.years(cells), None),
}
