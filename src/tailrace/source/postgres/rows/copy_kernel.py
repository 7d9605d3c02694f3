"""Rows of a COPY to columns, in machine code.

A row is a message: `d`, its length in four bytes, then the values with tabs between them and a line end after the last.

    d....7⇥17120.70⇥1996-03-13⇥open⏎

One pass reads each value as what its column holds, eight bytes at a time: to find the tab among them, and to make a
number of eight digits, takes a few operations on one 64-bit word each. So no byte is looked at twice, and few branches
depend on the data. Numba compiles this once for a machine, in a few seconds, and keeps the result in `__pycache__` or
in the user's cache folder.

No value is guessed: one that does not have the form known here is left to the caller, as text. Words reach over the
ends of values, so `SLACK` bytes must lie on both sides of the rows, and after all that is written.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import int64, uint64

HEAD_BYTES = 5
ROWS_MAX = 8192
SLACK = 32

TEXT, INTEGER, DECIMAL, BOOLEAN, DATE, TIMESTAMP, TIMESTAMP_UTC = range(7)
"""What a column's values are read as."""
ALL_UNDERSTOOD, MALFORMED = -1, -2

_DATA, _TRUE, _FALSE, _NULL = b"dtfN"
_BACKSLASH, _MINUS, _POINT, _COLON, _SPACE, _PLUS, _ZERO, _NINE = b"\\-.: +09"
_TAB, _LINE_END = b"\t\n"
_LENGTH_MIN = 4
"""A length counts itself."""
_DIGITS_MAX = 19
"""A number of this many digits fits 64 bits."""
_NOT_UNDERSTOOD = -1

_ONES = np.uint64(0x0101010101010101)
_HIGHS = np.uint64(0x8080808080808080)
_ZEROS = np.uint64(0x3030303030303030)
_SIXES = np.uint64(0x0606060606060606)
_TENS = np.uint64(0xF0F0F0F0F0F0F0F0)
_PAIRS = np.uint64(0x000000FF000000FF)
_EVEN_PAIRS, _ODD_PAIRS = np.uint64(100 + (1_000_000 << 32)), np.uint64(1 + (10_000 << 32))

_POWERS = np.array([10**exponent for exponent in range(_DIGITS_MAX + 1)], np.uint64)
_YEAR_BEGINS = np.arange(-1970, 10_001 - 1970).astype("M8[Y]").astype("M8[D]").astype(np.int64)
_MONTH_LENGTHS = np.array([[0, 31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] for february in (28, 29)])
_MONTH_BEGINS = np.cumsum(_MONTH_LENGTHS, axis=1) - _MONTH_LENGTHS
_DAY_US = 86_400_000_000
_ESCAPED = np.arange(256, dtype=np.uint8)
_ESCAPED[np.frombuffer(b"bfnrtv", np.uint8)] = np.frombuffer(b"\b\f\n\r\t\v", np.uint8)
"""What a byte after a backslash stands for."""


COLUMN = np.dtype(
    [
        ("kind", np.int64),
        ("width", np.int64),  # bytes of a value; of a text, those that say where it ends
        ("scale", np.int64),  # digits after the point
        ("limit", np.int64),  # the largest number; a negative one may be one larger in size
        ("delimiter", np.int64),  # the byte after a value
        ("valid_at", np.int64),  # where a byte for each row is written: 1, or 0 for null
        ("values_at", np.int64),  # where values of fixed width are written
        ("texts_at", np.int64),  # where texts are written, one after another
        ("used", np.int64),  # bytes that these have
        ("has_nulls", np.int64),  # 1 if there may be some
        ("has_others", np.uint64),  # not 0 if texts may have letters that are not ASCII
    ]
)
"""What is known of a column, where it is written, and what was found."""


def with_words(buffer: Any) -> tuple[Any, Any]:
    """Bytes, and the words that begin at each of them: they overlap."""
    return np.frombuffer(buffer, np.uint8), np.ndarray(len(buffer) - 7, "<u8", buffer, 0, (1,))


def _compiled(function: Any) -> Any:
    """To be called from Python. Nothing is allocated in here, so references are not counted."""
    compiling: Any = numba.njit
    try:
        return compiling(function, nogil=True, cache=True, _nrt=False)
    except RuntimeError:  # There is no folder to keep it in.
        return compiling(function, nogil=True, _nrt=False)


def _inlined(function: Any) -> Any:
    """A part of what is compiled: a call would take longer than most of these functions do."""
    compiling: Any = numba.njit
    return compiling(function, forceinline=True, _nrt=False)


@_inlined
def _message_end(data: Any, at: int) -> int:
    return at + 1 + ((int64(data[at + 1]) << 24) | (data[at + 2] << 16) | (data[at + 3] << 8) | data[at + 4])


@_compiled
def rows_end(data: Any, begin: int, end: int) -> int:
    """Where the rows from `begin` on end: at the first message that is none, or is not whole."""
    while end - begin >= HEAD_BYTES and data[begin] == _DATA:
        upto = _message_end(data, begin)
        if upto > end or upto < begin + 1 + _LENGTH_MIN:
            break
        begin = upto
    return begin


@_inlined
def _bytes_of(word: Any, byte: Any) -> Any:
    """The high bit of each byte of the word that is this one; exact up to the first."""
    other = word ^ (byte * _ONES)
    return (other - _ONES) & ~other & _HIGHS


@_inlined
def _below(high_bits: Any) -> Any:
    """All bits below the first of these; all there are without one."""
    return (high_bits - uint64(1)) & ~high_bits


@_inlined
def _bytes_before(high_bits: Any) -> int:
    """How many bytes lie before the first of these bits; eight without one."""
    if high_bits == uint64(0):
        return 8
    return int64(((_below(high_bits) & _ONES) * _ONES) >> uint64(56)) - 1


@_inlined
def _up_to_eight(word: Any, count: int) -> Any:
    """The number of the last digits in a word, and zero if they all are digits."""
    kept = ~uint64(0) << uint64(64 - 8 * count) if count else uint64(0)
    word = (word & kept) | (_ZEROS & ~kept)
    wrong = ((word & _TENS) ^ _ZEROS) | (((word + _SIXES) & _TENS) ^ _ZEROS)
    word = word - _ZEROS
    word = word * uint64(10) + (word >> uint64(8))
    eight = (word & _PAIRS) * _EVEN_PAIRS + ((word >> uint64(16)) & _PAIRS) * _ODD_PAIRS
    return eight >> uint64(32), wrong


@_inlined
def _digits(words: Any, begin: int, end: int) -> Any:
    """The number of up to `_DIGITS_MAX` digits, and zero if they all are digits."""
    count = end - begin
    number, wrong = _up_to_eight(words[end - 8], min(count, 8))
    if count > 8:
        higher, wrong_too = _up_to_eight(words[end - 16], min(count - 8, 8))
        number, wrong = number + higher * uint64(100_000_000), wrong | wrong_too
    if count > 16:
        higher, wrong_too = _up_to_eight(words[end - 24], count - 16)
        number, wrong = number + higher * uint64(10_000_000_000_000_000), wrong | wrong_too
    return number, wrong


@_inlined
def _number(sent: Any, at: int, column: Any) -> tuple[int, int]:
    """The number at a place, times ten to its scale, and where it ends."""
    data, words = sent
    negative = int64(data[at] == _MINUS)
    begin = at + negative
    end, count = begin, 8
    while count == 8:
        count = _bytes_before(_bytes_of(words[end], uint64(column.delimiter))) if end <= begin + 16 else 0
        end += count
    point = end - column.scale - 1 if column.scale else end
    if point - begin < 1 or point - begin + column.scale > _DIGITS_MAX:
        return 0, _NOT_UNDERSTOOD
    number, wrong = _digits(words, begin, point)
    if column.scale:
        fraction, wrong_too = _digits(words, point + 1, end)
        number = number * _POWERS[column.scale] + fraction
        wrong |= wrong_too | uint64(data[point] != _POINT)
    if wrong or number > uint64(column.limit + negative):
        return 0, _NOT_UNDERSTOOD
    return (int64(number) ^ -negative) + negative, end


@_inlined
def _day(sent: Any, at: int) -> tuple[int, int]:
    """`YYYY-MM-DD` as days since 1970, and where it ends."""
    data, words = sent
    year, wrong = _up_to_eight(words[at - 4], 4)
    month, wrong_too = _up_to_eight(words[at - 1], 2)
    day, wrong_also = _up_to_eight(words[at + 2], 2)
    if wrong | wrong_too | wrong_also or data[at + 4] != _MINUS or data[at + 7] != _MINUS:
        return 0, _NOT_UNDERSTOOD
    is_leap = int64(_YEAR_BEGINS[year + uint64(1)] - _YEAR_BEGINS[year] == 366)
    if year == 0 or month == 0 or month > 12 or day == 0 or int64(day) > _MONTH_LENGTHS[is_leap, month]:
        return 0, _NOT_UNDERSTOOD
    return _YEAR_BEGINS[year] + _MONTH_BEGINS[is_leap, month] + int64(day) - 1, at + 10


@_inlined
def _fraction(data: Any, at: int) -> tuple[int, int]:
    """Up to six digits after a point as millionths, and where they end; zero without a point."""
    if data[at] != _POINT:
        return 0, at
    number, end = 0, at + 1
    while end < at + 7 and _ZERO <= data[end] <= _NINE:
        number = number * 10 + int64(data[end]) - _ZERO
        end += 1
    if end == at + 1:
        return 0, _NOT_UNDERSTOOD
    return number * int64(_POWERS[at + 7 - end]), end


@_inlined
def _moment(sent: Any, at: int, is_utc: bool) -> tuple[int, int]:
    """`YYYY-MM-DD HH:MM:SS[.ffffff][+00]` as microseconds since 1970, and where it ends."""
    data, words = sent
    days, time_at = _day(sent, at)
    hour, wrong = _up_to_eight(words[at + 5], 2)
    minute, wrong_too = _up_to_eight(words[at + 8], 2)
    second, wrong_also = _up_to_eight(words[at + 11], 2)
    micros, end = _fraction(data, at + 19)
    if _NOT_UNDERSTOOD in (time_at, end) or wrong | wrong_too | wrong_also:
        return 0, _NOT_UNDERSTOOD
    if data[time_at] != _SPACE or data[at + 13] != _COLON or data[at + 16] != _COLON:
        return 0, _NOT_UNDERSTOOD
    if hour > 23 or minute > 59 or second > 59:
        return 0, _NOT_UNDERSTOOD
    if is_utc:
        if data[end] != _PLUS or data[end + 1] != _ZERO or data[end + 2] != _ZERO:
            return 0, _NOT_UNDERSTOOD
        end += 3
    seconds = int64(hour) * 3600 + int64(minute) * 60 + int64(second)
    return days * _DAY_US + seconds * 1_000_000 + micros, end


@_inlined
def _truth(data: Any, at: int) -> tuple[int, int]:
    if data[at] != _TRUE and data[at] != _FALSE:
        return 0, _NOT_UNDERSTOOD
    return int64(data[at] == _TRUE), at + 1


@_inlined
def _value(sent: Any, at: int, column: Any) -> tuple[int, int]:
    """A value of a fixed width, and where it ends."""
    if column.kind in (INTEGER, DECIMAL):
        return _number(sent, at, column)
    if column.kind == DATE:
        return _day(sent, at)
    if column.kind == BOOLEAN:
        return _truth(sent[0], at)
    return _moment(sent, at, column.kind == TIMESTAMP_UTC)


@_inlined
def _unescape(data: Any, at: int, end: int, out: Any, out_at: int) -> int:
    """Write a text without its escapes; how long it is."""
    begin = out_at
    while at < end:
        byte = data[at]
        if byte == _BACKSLASH:
            at += 1
            byte = _ESCAPED[data[at]]
        out[out_at] = byte
        out_at += 1
        at += 1
    return out_at - begin


@_inlined
def _be_null(out: Any, row: int, column: Any) -> None:
    out[0][column.valid_at + row] = 0
    column.has_nulls = 1


@_inlined
def _read_value(sent: Any, at: int, out: Any, row: int, column: Any) -> int:
    """Where it ends."""
    if sent[0][at] == _BACKSLASH:
        value, end = 0, at + 2
        _be_null(out, row, column)
    else:
        value, end = _value(sent, at, column)
    out_at = column.values_at + row * column.width
    out[1][out_at] = uint64(value)
    if column.kind == DECIMAL:
        out[1][out_at + 8] = uint64(value >> 63)
    return end


@_inlined
def _copy(words: Any, at: int, upto: int, out_words: Any, column: Any) -> tuple[int, bool]:
    """Write a text as it is; where it ends, and whether it has escapes. One with a tab in it never ends."""
    out_at = column.texts_at + column.used
    escapes, others, tabs = uint64(0), uint64(0), uint64(0)
    end, count = at, 8
    while count == 8 and end < upto:
        word = words[end]
        out_words[out_at + end - at] = word
        stop = _bytes_of(word, uint64(column.delimiter))
        escapes |= _bytes_of(word, uint64(_BACKSLASH)) & _below(stop)
        others |= word & _HIGHS & _below(stop)
        if column.delimiter == _LINE_END:
            tabs |= _bytes_of(word, uint64(_TAB)) & _below(stop)
        count = _bytes_before(stop)
        end += count
    column.has_others |= others
    return upto if tabs else end, escapes != uint64(0)


@_inlined
def _read_text(sent: Any, at: int, upto: int, out: Any, row: int, column: Any) -> int:
    """Where it ends."""
    end, has_escapes = _copy(sent[1], at, upto, out[1], column)
    length = end - at
    if has_escapes:
        if length == 2 and sent[0][at + 1] == _NULL:
            length = 0
            _be_null(out, row, column)
        else:
            length = _unescape(sent[0], at, min(end, upto), out[0], column.texts_at + column.used)
    column.used += length
    out[1][column.values_at + row * column.width] = uint64(column.used)
    return end


@_compiled
def read(sent: Any, begin: int, end: int, columns: Any, out: Any, bytes_max: int) -> tuple[int, int, int]:
    """Read whole rows from `begin` on, at most `ROWS_MAX`, of so many bytes together: how many, where the next one
    begins, and which column has a value there that is not understood."""
    at, row = begin, 0
    while at < end and row < ROWS_MAX:
        upto = _message_end(sent[0], at)
        if upto - begin > bytes_max:
            break
        value_at = at + HEAD_BYTES
        for number in range(len(columns)):
            column = columns[number]
            if column.kind == TEXT:
                value_end = _read_text(sent, value_at, upto, out, row, column)
            else:
                value_end = _read_value(sent, value_at, out, row, column)
            if value_end == _NOT_UNDERSTOOD or value_end >= upto or sent[0][value_end] != column.delimiter:
                return row, at, MALFORMED if column.kind == TEXT else number
            value_at = value_end + 1
        # A row without columns is a line end.
        if value_at + int64(len(columns) == 0) != upto:
            return row, at, MALFORMED
        at = upto
        row += 1
    return row, at, ALL_UNDERSTOOD
