"""Postgres's text of arrays, taken apart for all rows of a batch at once.

    {1,NULL,3}   {"a,b","say \\"x\\"",NULL}   {}        one dimension that begins at 1: elements
    {{1,2},{3,4}}   [0:1]={5,6}                        anything else: not flat, and left as it is

An element is in quotes where it would be misread without them; inside, a quote and a backslash have a backslash before
them. So a quote counts if an even number of backslashes precedes it, and a comma if an even number of quotes does. Both
are known for every byte of a batch by counting along it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tailrace.errors import DefiniteError

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]

_QUOTE, _BACKSLASH, _COMMA, _OPEN, _CLOSE, _BOUND = b'"\\,{}['
_NULL = np.frombuffer(b"NULL", np.uint8)


@dataclass(frozen=True)
class ArrayTexts:
    """The arrays of a column."""

    is_flat: Mask
    """Which of them have one dimension that begins at 1; False for null."""
    counts: Places
    """How many elements each has; none where it is not flat."""
    elements: Any
    """The texts of all elements, one row after another, as a binary array."""


@dataclass(frozen=True)
class _Marks:
    """For every byte, whether it is a quote that counts, an escape, and inside quotes."""

    quote: Mask
    escape: Mask
    inside: Mask


def parse(text: Any) -> ArrayTexts:
    """The arrays of a binary array of Postgres text. A definite error for what is no array."""
    text = text.fill_null(b"") if text.null_count else text
    offsets = np.frombuffer(text.buffers()[1] or bytes(4), np.int32)[text.offset :][: len(text) + 1].astype(np.int64)
    data = np.frombuffer(text.buffers()[2] or b"", np.uint8)[offsets[0] : offsets[-1]]
    starts, ends = offsets[:-1] - offsets[0], offsets[1:] - offsets[0]
    marks = _marks(data)
    is_there = ends > starts
    _require_arrays(data, starts[is_there], ends[is_there], marks)
    opens = _counted(data == _OPEN, marks, starts, ends)
    is_flat = is_there & (opens == 1)
    is_flat[is_there] &= data[starts[is_there]] == _OPEN
    is_filled = is_flat & (ends - starts > 2)
    commas = np.flatnonzero((data == _COMMA) & ~marks.inside)
    commas = commas[is_filled[ends.searchsorted(commas, "right")]] if len(commas) else commas
    # Both are two ascending runs, which this sort merges.
    firsts = np.sort(np.concatenate((starts[is_filled] + 1, commas + 1)), kind="stable")
    lasts = np.sort(np.concatenate((commas, ends[is_filled] - 1)), kind="stable")
    counts = np.where(is_filled, _counted(data == _COMMA, marks, starts, ends) + 1, 0)
    return ArrayTexts(is_flat, counts, _elements(data, marks, firsts, lasts))


def _marks(data: Bytes) -> _Marks:
    is_quote = data == _QUOTE
    if not is_quote.any():
        nothing = np.zeros(len(data), np.bool_)
        return _Marks(nothing, nothing, nothing)
    is_backslash = data == _BACKSLASH
    place = np.arange(len(data))
    other = np.maximum.accumulate(np.where(is_backslash, -1, place))
    before = place - 1 - np.concatenate(([-1], other[:-1]))
    is_escaped = before % 2 == 1
    quote = is_quote & ~is_escaped
    return _Marks(quote, is_backslash & ~is_escaped, np.cumsum(quote) % 2 == 1)


def _counted(found: Mask, marks: _Marks, starts: Places, ends: Places) -> Places:
    """How many of some bytes outside of quotes each row has."""
    total = np.concatenate(([0], np.cumsum(found & ~marks.inside)))
    counts: Places = total[ends] - total[starts]
    return counts


def _require_arrays(data: Bytes, starts: Places, ends: Places, marks: _Marks) -> None:
    is_array = ends - starts >= 2
    is_array &= (data[starts] == _OPEN) | (data[starts] == _BOUND)
    is_array &= (data[ends - 1] == _CLOSE) & ~marks.inside[ends - 1]
    if not is_array.all():
        wrong = int(np.argmin(is_array))
        shown = bytes(data[starts[wrong] : ends[wrong]][:60]).decode(errors="replace")
        raise DefiniteError(f"the value '{shown}' is no array")


def _elements(data: Bytes, marks: _Marks, firsts: Places, lasts: Places) -> Any:
    """The texts between these places, without quotes and escapes. They are not moved to be cut out: an array whose
    offsets alternate between the start and the end of a text has the texts as its even elements."""
    count = len(firsts)
    if not count:
        return pa.array([], pa.binary())
    is_null = lasts - firsts == len(_NULL)
    for place, letter in enumerate(_NULL):
        is_null[is_null] = data[firsts[is_null] + place] == letter
    if marks.quote.any():
        is_kept = ~(marks.quote | marks.escape)
        moved = np.concatenate(([0], np.cumsum(is_kept)))
        data, firsts, lasts = data[is_kept], moved[firsts], moved[lasts]
    bounds = np.empty(2 * count, np.int32)
    bounds[0::2], bounds[1::2] = firsts, lasts
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(np.ascontiguousarray(data))]
    alternating = pa.BinaryArray.from_buffers(pa.binary(), 2 * count - 1, buffers)
    even = pa.array(np.arange(0, 2 * count, 2, dtype=np.int32), mask=is_null if is_null.any() else None)
    return alternating.take(even)
