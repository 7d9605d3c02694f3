"""The text of a query's values to Arrow, a column at a time: the same arrays that the binlog's bytes become.

Times are printed in UTC, because every connection of ours asks for that, and text in UTF-8.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.errors import DefiniteError
from tailrace.model.rows.lake_types import arrow_type
from tailrace.source.mysql.values import temporals
from tailrace.source.mysql.values.casts import vectors
from tailrace.source.mysql.values.column_type import BLOBS, GEOMETRIES, INTEGERS, ColumnType
from tailrace.source.mysql.values.images import Array, ColumnCells

_ZERO = ord("0")
_DATE_BYTES, _SECOND_BYTES = 10, 19
Cast = tuple[Any, Any | None]


def cast_text(cells: ColumnCells, type_: ColumnType, lake: str) -> Cast:
    """A column's values as an array of the lake type's Arrow type, and the texts of those that it cannot hold: null in
    all other rows, None where there are none. The lake type is the type's own, or `string` for any."""
    if lake == "string" and type_.lake_type != "string":
        return _strings(cells, type_)
    if lake != type_.lake_type:
        raise DefiniteError(f"a column of type {type_} cannot be {lake}", "copy the table again")
    try:
        return _READERS.get(type_.name, _strings)(cells, type_)
    except pa.ArrowInvalid as error:
        raise DefiniteError(f"the server printed a value of type {type_} in an odd way: {error}", "report it") from None


def _strings(cells: ColumnCells, type_: ColumnType) -> Cast:
    return pc.cast(cells.bytes(), pa.string()), None


def _bytes(cells: ColumnCells, type_: ColumnType) -> Cast:
    return cells.bytes(), None


def _numbers(cells: ColumnCells, type_: ColumnType) -> Cast:
    return pc.cast(_strings(cells, type_)[0], arrow_type(type_.lake_type)), None


def _decimals(cells: ColumnCells, type_: ColumnType) -> Cast:
    return (_strings if type_.lake_type == "string" else _numbers)(cells, type_)


def _floats(cells: ColumnCells, type_: ColumnType) -> Cast:
    """A float is printed as the double that it is: making it shorter again loses nothing."""
    return pc.cast(pc.cast(_strings(cells, type_)[0], pa.float64()), arrow_type(type_.lake_type), safe=False), None


def _bits(cells: ColumnCells, type_: ColumnType) -> Cast:
    if type_.size > 1:
        return _numbers(cells, type_)
    return pc.equal(_strings(cells, type_)[0], "1"), None


def _dates(cells: ColumnCells, type_: ColumnType) -> Cast:
    year, month, day = _date_parts(_digits(cells, _DATE_BYTES))
    return temporals.dates_of(cells, (year, month, day))


def _datetimes(cells: ColumnCells, type_: ColumnType) -> Cast:
    digits = _digits(cells, _SECOND_BYTES + (type_.size + 1 if type_.size else 0))
    clock = tuple(_number(digits, at, 2) for at in (11, 14, 17))
    fraction = _number(digits, _SECOND_BYTES + 1, type_.size) * 10 ** (6 - type_.size)
    return temporals.datetimes_of(cells, type_, _date_parts(digits), (clock[0], clock[1], clock[2]), fraction)


def _date_parts(digits: Array) -> tuple[Array, Array, Array]:
    return _number(digits, 0, 4), _number(digits, 5, 2), _number(digits, 8, 2)


def _digits(cells: ColumnCells, width: int) -> Array:
    """The bytes of texts that all have this width, a row each; zeros where there is none."""
    if (cells.lengths[cells.is_there] != width).any():
        raise DefiniteError("the server printed a time in an odd way", "report it, with the version of the server")
    begins = np.where(cells.is_there, cells.begins, 0)
    found: Array = cells.data[np.minimum(begins[:, None] + np.arange(width), len(cells.data) - 1)]
    found[~cells.is_there] = _ZERO
    return found


def _number(digits: Array, at: int, count: int) -> Array:
    found = np.zeros(len(digits), np.int64)
    for place in range(at, at + count):
        found = found * 10 + (digits[:, place].astype(np.int64) - _ZERO)
    return found


_READERS: dict[str, Callable[[ColumnCells, ColumnType], Cast]] = {
    **dict.fromkeys((*INTEGERS, "year"), _numbers),
    **dict.fromkeys(("binary", "varbinary", *BLOBS, *GEOMETRIES), _bytes),
    **dict.fromkeys(("float", "double"), _floats),
    **dict.fromkeys(("datetime", "timestamp"), _datetimes),
    "date": _dates,
    "decimal": _decimals,
    "bit": _bits,
    "vector": vectors,
}
