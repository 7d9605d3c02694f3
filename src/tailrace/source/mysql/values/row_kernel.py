"""Rows of the binlog, walked in machine code.

Rows lie packed, without offsets, and a value's length may stand before it, so every value of a row must be stepped
over to find the next one. Two walks are here: `cut` finds where the rows of an event end, when it is captured, and
`find` says where each value of many rows lies, when they are decoded. The rest reads values of fixed width, a column at
a time.

    image    null bits, one for each column that is there  │  the values that are not null, one after another

Nothing is read beyond the end of what is given, whatever the bytes say. Numba compiles this once for a machine, in a
few seconds, and keeps the result in `__pycache__` or in the user's cache folder.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import int64, uint64

NULL, ABSENT, NO_ROW = -1, -2, -3
"""In the place of a value's length: it is null, the source left it out, there is no such row."""
WHOLE, PARTIAL = 0, 1
"""How a logged row begins: all columns are there, or what is there follows, a bit for each column and image."""
TRUNCATED, TOO_LONG, ODD_FORM = 1, 2, 3
"""What is wrong with a row."""
OLD, NEW = 1, 2
"""Which images a row has."""

_LOW = np.uint64(0xFFFFFFFF)
_GROUP_DIGITS = 9
_DIGITS_BYTES = np.array([0, 1, 1, 2, 2, 3, 3, 4, 4, 4], np.int64)
_POWERS = np.array([10**exponent for exponent in range(10)], np.uint64)


def _compiled(function: Any) -> Any:
    compiling: Any = numba.njit
    try:
        return compiling(function, nogil=True, cache=True)
    except RuntimeError:  # There is no folder to keep it in.
        return compiling(function, nogil=True)


def _part(function: Any) -> Any:
    """Of what is compiled."""
    compiling: Any = numba.njit
    return compiling(function)


@_part
def _is_set(data: Any, at: int, bit: int) -> bool:
    return (data[at + (bit >> 3)] >> (bit & 7)) & 1 == 1


@_part
def _value_end(data: Any, at: int, end: int, width: int) -> Any:
    """Where the value's bytes begin and end; the beginning is -1 where it does not lie before `end`."""
    if width >= 0:
        return (at, at + width) if at + width <= end else (-1, -1)
    prefix = -width
    if at + prefix > end:
        return -1, -1
    length = int64(0)
    for place in range(prefix):
        length |= int64(data[at + place]) << int64(8 * place)
    begin = at + prefix
    return (begin, begin + length) if begin + length <= end else (-1, -1)


@_part
def _image_end(data: Any, at: int, end: int, widths: Any, present: Any) -> int:
    """Where the image ends; -1 where it does not end before `end`. `present` has a flag for each column."""
    count = 0
    for column in range(len(widths)):
        count += present[column]
    nulls = at
    at += (count + 7) >> 3
    if at > end:
        return -1
    place = 0
    for column in range(len(widths)):
        if not present[column]:
            continue
        if not _is_set(data, nulls, place):
            begin, at = _value_end(data, at, end, widths[column])
            if begin < 0:
                return -1
        place += 1
    return at


@_compiled
def cut(data: Any, span: Any, widths: Any, presents: Any, bounds: Any) -> int:
    """Cut an event's rows, which lie in `data` from `span[0]` to `span[1]`. Each has as many images as `presents` has
    rows of flags. Writes where each row ends, and returns their number; -1 where they do not end with the event, -2
    where `bounds` is too short."""
    at, end = span[0], span[1]
    rows = 0
    while at < end:
        if rows == len(bounds):
            return -2
        begin = at
        for image in range(len(presents)):
            at = _image_end(data, at, end, widths, presents[image])
            if at < 0:
                return -1
        if at == begin:
            return -1
        bounds[rows] = at
        rows += 1
    return rows


@_compiled
def joined(data: Any, begin: int, ends: Any, head: Any, out: Any) -> None:
    """Write rows that lie one after another from `begin` to the `ends` into `out`, each with the `head` before it."""
    at = 0
    for row in range(len(ends)):
        out[at : at + len(head)] = head
        at += len(head)
        length = ends[row] - begin
        out[at : at + length] = data[begin : begin + length]
        at += length
        begin = ends[row]


@_part
def _find_image(data: Any, where: Any, widths: Any, begins: Any, lengths: Any) -> int:
    """One image's values. `where` is its row, its start, its end, and the bits of the columns that are there, or -1."""
    row, at, end, bits = where
    count = 0
    for column in range(len(widths)):
        count += 1 if bits < 0 or _is_set(data, bits, column) else 0
    nulls = at
    at += (count + 7) >> 3
    if at > end:
        return -1
    place = 0
    for column in range(len(widths)):
        begins[column, row] = at
        if bits >= 0 and not _is_set(data, bits, column):
            lengths[column, row] = ABSENT
            continue
        if _is_set(data, nulls, place):
            lengths[column, row] = NULL
        else:
            begin, at = _value_end(data, at, end, widths[column])
            if begin < 0:
                return -1
            begins[column, row] = begin
            lengths[column, row] = at - begin
        place += 1
    return at


@_compiled
def find(data: Any, rows: Any, widths: Any, old: Any, new: Any) -> int:
    """Find the values of logged rows. `rows` has three rows: where each begins, where it ends, which images it has.
    `old` and `new` are pairs of arrays, a row for each column: where its values begin, and their lengths. Returns 4 *
    row + what is wrong with it, or -1."""
    begins, ends, images = rows
    bits_bytes = (len(widths) + 7) >> 3
    for row in range(len(begins)):
        at, end, which = begins[row], ends[row], images[row]
        old_bits, new_bits = -1, -1
        if which:
            if at >= end or data[at] > PARTIAL:
                return 4 * row + ODD_FORM
            is_partial = data[at] == PARTIAL
            at += 1
            if is_partial:
                if which & OLD:
                    old_bits = at
                    at += bits_bytes
                if which & NEW:
                    new_bits = at
                    at += bits_bytes
                if at > end:
                    return 4 * row + TRUNCATED
        if which & OLD:
            at = _find_image(data, (row, at, end, old_bits), widths, old[0], old[1])
            if at < 0:
                return 4 * row + TRUNCATED
        if which & NEW:
            at = _find_image(data, (row, at, end, new_bits), widths, new[0], new[1])
            if at < 0:
                return 4 * row + TRUNCATED
        if at != end:
            return 4 * row + TOO_LONG
    return -1


@_compiled
def numbers(data: Any, begins: Any, lengths: Any, is_big_endian: bool) -> Any:
    """The unsigned numbers that values of up to eight bytes are; 0 where there is none."""
    found = np.zeros(len(begins), np.uint64)
    for row in range(len(begins)):
        value = uint64(0)
        for place in range(max(0, lengths[row])):
            byte = uint64(data[begins[row] + place])
            value = (value << uint64(8)) | byte if is_big_endian else value | (byte << uint64(8 * place))
        found[row] = value
    return found


@_part
def _scaled(low: Any, high: Any, factor: Any, more: Any) -> Any:
    """(high, low) * factor + more, of 128 bits. The factor has at most 32 bits."""
    first = (low & _LOW) * factor + more
    second = (low >> uint64(32)) * factor + (first >> uint64(32))
    return (second << uint64(32)) | (first & _LOW), high * factor + (second >> uint64(32))


@_compiled
def decimals(data: Any, begins: Any, lengths: Any, digits: Any, out: Any) -> None:
    """Values of decimal(p,s) as numbers of 128 bits: `out` takes the low and the high half of each. `digits` are those
    before and after the point.

    Digits are in groups of nine, each a number of four bytes, big endian; those at both ends that fill no group take as
    many bytes as they need. The first bit is 1 unless the value is negative, and then all bits are turned round."""
    before, after = digits
    for row in range(len(begins)):
        low, high = uint64(0), uint64(0)
        if lengths[row] > 0:
            at = begins[row]
            is_negative = data[at] & 0x80 == 0
            turned = uint64(0xFF) if is_negative else uint64(0)
            first = uint64(0x80)
            for part in range(2):
                left = before if part == 0 else after
                taken = left % _GROUP_DIGITS if part == 0 else min(left, _GROUP_DIGITS)
                if part == 0 and taken == 0:
                    taken = min(left, _GROUP_DIGITS)
                while left > 0:
                    group = uint64(0)
                    for _ in range(_DIGITS_BYTES[taken]):
                        group = (group << uint64(8)) | ((uint64(data[at]) ^ first) ^ turned)
                        first = uint64(0)
                        at += 1
                    low, high = _scaled(low, high, _POWERS[taken], group)
                    left -= taken
                    taken = min(left, _GROUP_DIGITS)
            if is_negative:
                low = ~low + uint64(1)
                high = ~high + (uint64(1) if low == uint64(0) else uint64(0))
        out[row, 0], out[row, 1] = low, high
