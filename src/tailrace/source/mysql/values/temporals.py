"""Dates and times of the binlog to Arrow, a column at a time.

What a lake type cannot hold is null, and its text is given beside it: dates of which a part is zero, days that a month
does not have, and the year 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tailrace.model.rows.lake_types import arrow_type
from tailrace.source.mysql.values.column_type import ColumnType
from tailrace.source.mysql.values.images import Array, ColumnCells
from tailrace.source.mysql.values.temporal_text import date_text, datetime_text, time_text

_DAY_US = 86_400_000_000
_SECOND_US = 1_000_000
_MONTHS = 13
Parts = tuple[Array, Array, Array]
_DATETIME_OFFSET, _TIME_OFFSET = 0x8000000000, 0x800000


def dates(cells: ColumnCells) -> tuple[Any, Any | None]:
    """Three bytes: five bits of the day, four of the month, the rest is the year."""
    packed = cells.numbers().astype(np.int64)
    return dates_of(cells, (packed >> 9, packed >> 5 & 0xF, packed & 0x1F))


def dates_of(cells: ColumnCells, parts: Parts) -> tuple[Any, Any | None]:
    """From year, month and day."""
    days, fits = _days(*parts)
    odd = _odd(cells, fits, lambda row: date_text(*(int(part[row]) for part in parts)))
    return _array(days.astype(np.int32), cells, fits, pa.date32()), odd


def datetimes(cells: ColumnCells, type_: ColumnType) -> tuple[Any, Any | None]:
    """Five bytes, big endian: 17 bits of year and month, five of the day and the hour, six of minute and second; then
    the fraction."""
    whole, fraction = _split(cells, type_)
    packed = whole.astype(np.int64) - _DATETIME_OFFSET
    months, day = packed >> 22, packed >> 17 & 0x1F
    clock = packed >> 12 & 0x1F, packed >> 6 & 0x3F, packed & 0x3F
    return datetimes_of(cells, type_, (months // _MONTHS, months % _MONTHS, day), clock, fraction)


def datetimes_of(
    cells: ColumnCells, type_: ColumnType, date: Parts, clock: Parts, fraction: Array
) -> tuple[Any, Any | None]:
    """From the parts of a date and of a time of day, and microseconds."""
    days, fits = _days(*date)
    found = days * _DAY_US + (clock[0] * 3600 + clock[1] * 60 + clock[2]) * _SECOND_US + fraction

    def text(row: int) -> str:
        day = date_text(*(int(part[row]) for part in date))
        return datetime_text(day, _clock(clock, row), int(fraction[row]), type_.size)

    target = arrow_type(type_.lake_type)
    return _array(found, cells, fits, target), _odd(cells, fits, text)


def timestamps(cells: ColumnCells, type_: ColumnType) -> tuple[Any, Any | None]:
    """Seconds since 1970 in UTC, four bytes, big endian; then the fraction. Zero is no time, but the zero date."""
    whole, fraction = _split(cells, type_)
    found = whole.astype(np.int64) * _SECOND_US + fraction
    fits = found != 0
    zero = datetime_text(date_text(0, 0, 0), (0, 0, 0), 0, type_.size)
    return _array(found, cells, fits, pa.timestamp("us", "UTC")), _odd(cells, fits, lambda _: zero)


def times(cells: ColumnCells, type_: ColumnType) -> Any:
    """A span of up to 838 hours either way, as text: three bytes, big endian, of hours, minutes and seconds, and the
    fraction, as one number with an offset, so that it orders."""
    size = (type_.size + 1) // 2
    packed = cells.numbers(is_big_endian=True).astype(np.int64) - (_TIME_OFFSET << 8 * size)
    is_negative, packed = packed < 0, np.abs(packed)
    fraction = (packed & ((1 << 8 * size) - 1)) * 100 ** (3 - size)
    whole = packed >> 8 * size
    clock = whole >> 12 & 0x3FF, whole >> 6 & 0x3F, whole & 0x3F
    there = cells.is_there.tolist()
    return pa.array(
        [
            time_text(bool(is_negative[row]), _clock(clock, row), int(fraction[row]), type_.size) if is_there else None
            for row, is_there in enumerate(there)
        ],
        pa.string(),
    )


def years(cells: ColumnCells) -> Any:
    """One byte; 0 is the year 0, all others count from 1900."""
    packed = cells.numbers().astype(np.int16)
    return pa.array(np.where(packed == 0, 0, packed + 1900).astype(np.int16), mask=cells.mask)


def date_texts(values: Any, odd: Any | None, type_: ColumnType) -> Any:
    """What `dates`, `datetimes` or `timestamps` found, all as text."""
    found = [None if each is None else _text(each, type_) for each in values.to_pylist()]
    texts = odd.to_pylist() if odd is not None else [None] * len(found)
    return pa.array([text if value is None else value for value, text in zip(found, texts, strict=True)], pa.string())


def _text(value: Any, type_: ColumnType) -> str:
    date = date_text(value.year, value.month, value.day)
    if type_.name == "date":
        return date
    return datetime_text(date, (value.hour, value.minute, value.second), value.microsecond, type_.size)


def _split(cells: ColumnCells, type_: ColumnType) -> tuple[Array, Array]:
    """The part before the fraction, and the fraction in microseconds."""
    size = (type_.size + 1) // 2
    packed = cells.numbers(is_big_endian=True)
    fraction = (packed & np.uint64((1 << 8 * size) - 1)).astype(np.int64) * 100 ** (3 - size)
    return packed >> np.uint64(8 * size), fraction


def _clock(clock: Parts, row: int) -> tuple[int, int, int]:
    return int(clock[0][row]), int(clock[1][row]), int(clock[2][row])


def _days(year: Array, month: Array, day: Array) -> tuple[Array, Array]:
    """Days since 1970-01-01, and which dates there are."""
    fits = (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    months = np.where(fits, (year - 1970) * 12 + month - 1, 0).astype("M8[M]")
    first = months.astype("M8[D]").astype(np.int64)
    length = (months + 1).astype("M8[D]").astype(np.int64) - first
    return first + day - 1, fits & (day <= length)


def _array(values: Array, cells: ColumnCells, fits: Array, type_: Any) -> Any:
    there = cells.is_there & fits
    return pa.array(values, mask=None if there.all() else ~there).view(type_)


def _odd(cells: ColumnCells, fits: Array, text: Any) -> Any | None:
    """The texts of values that do not fit; null for all others, None where all fit."""
    rows = np.flatnonzero(cells.is_there & ~fits)
    if not len(rows):
        return None
    found: list[str | None] = [None] * len(cells)
    for row in rows.tolist():
        found[row] = text(row)
    return pa.array(found, pa.string())
