"""Rows of a result, walked in machine code.

    length 3  number 1  │  length  text  length  text …        a packet is a row; 0xFB in place of a length is null

A length takes one byte, or two, three or eight after a byte that says so. Numba compiles this once for a machine.
"""

# mypy: disable-error-code="no-any-return"

from __future__ import annotations

from typing import Any

import numba
from numba import int64

from tailrace.source.mysql.values.row_kernel import NULL

HEAD_BYTES = 4
ALL_READ, MALFORMED, NO_ROW_PACKET = -1, -2, -3
PACKET_BYTES_MAX = 0xFFFFFF
_NULL, _TWO, _THREE, _EIGHT, _ERROR = 0xFB, 0xFC, 0xFD, 0xFE, 0xFF
_SHORT_BYTES_MAX = 9


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
def _number(data: Any, at: int, count: int) -> Any:
    found = int64(0)
    for place in range(count):
        found |= int64(data[at + place]) << int64(8 * place)
    return found


@_part
def _row_is_read(data: Any, span: Any, row: int, begins: Any, lengths: Any) -> bool:
    """Whether the row's values fill its packet, which lies between the places of `span`."""
    place, end = span
    for column in range(begins.shape[0]):
        if place >= end:
            return False
        first = int64(data[place])
        more = 2 if first == _TWO else 3 if first == _THREE else 8 if first == _EIGHT else 0
        begin = place + 1 + more
        if begin > end:
            return False
        size = _number(data, place + 1, more) if more else first
        begins[column, row] = begin
        if first == _NULL:
            lengths[column, row] = NULL
            place = begin
            continue
        if size < 0 or size > end - begin:
            return False
        lengths[column, row] = size
        place = begin + size
    return place == end


@_compiled
def read(data: Any, at: int, begins: Any, lengths: Any) -> Any:
    """Find the values of the rows from `at` on: where each begins, and its length. Returns the number of rows, where
    the first packet lies that was not read, and why it was not: there is no more whole packet or no more room, it is no
    row of so many columns, or it is the end, an error, or the first of several that are one row."""
    rows, why = 0, ALL_READ
    while rows < begins.shape[1] and at + HEAD_BYTES <= len(data):
        length = _number(data, at, 3)
        place, end = at + HEAD_BYTES, at + HEAD_BYTES + length
        if length == PACKET_BYTES_MAX:
            why = NO_ROW_PACKET
            break
        if end > len(data):
            break
        if length and (data[place] == _ERROR or (data[place] == _EIGHT and length < _SHORT_BYTES_MAX)):
            why = NO_ROW_PACKET
            break
        if not _row_is_read(data, (place, end), rows, begins, lengths):
            why = MALFORMED
            break
        rows += 1
        at = end
    return rows, at, why
