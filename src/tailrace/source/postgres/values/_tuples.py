"""Where the values of a batch of pgoutput tuples lie, found a column at a time.

A tuple is `int16 columns`, then for each column a flag byte: `n` null, `u` unchanged TOAST,
`t` text, which continues with `int32 length` and the text. So a column starts where the one before
it ends, and that is known for all rows of the batch at once: the loop is over columns, never
over rows.

    row 0   2  t 1 "7"   n              column 0 starts at   [ 7, 27, ...]
    row 1   2  t 2 "12"  t 3 "abc"      column 1 is null in row 0, starts at 34 in row 1
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Positions = npt.NDArray[np.int64]
Flags = npt.NDArray[np.uint8]

NO_TUPLE = 0
NULL, UNCHANGED, TEXT = b"nut"
_COUNT_BYTES = 2
_FLAG_BYTES = 1
_LENGTH_BYTES = 4


class MalformedError(Exception):
    """Row `row` of the batch does not have the form of a pgoutput message."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row = row
        self.reason = reason


@dataclass(frozen=True)
class Payloads:
    """The messages of a batch: row i is `data[starts[i]:ends[i]]`, rows in order."""

    data: npt.NDArray[np.uint8]
    starts: Positions
    ends: Positions

    @classmethod
    def of(cls, payload: Any) -> Payloads:
        """Look at an Arrow binary array without copying it."""
        array = payload.cast(pa.binary())
        _, offsets_buffer, data_buffer = array.buffers()
        bounds = np.frombuffer(offsets_buffer or bytes(4), dtype=np.int32)
        offsets = bounds[array.offset : array.offset + len(array) + 1].astype(np.int64)
        data = np.frombuffer(data_buffer or b"", dtype=np.uint8)
        return cls(data, offsets[:-1], offsets[1:])

    def __len__(self) -> int:
        return len(self.starts)

    def part(self, start: int, stop: int) -> Payloads:
        """Some of the messages, without copying them."""
        return Payloads(self.data, self.starts[start:stop], self.ends[start:stop])

    def uint16(self, at: Positions) -> Positions:
        return self._big_endian(">u2")[at].astype(np.int64)

    def uint32(self, at: Positions) -> Positions:
        return self._uint32s[at].astype(np.int64)

    @cached_property
    def _uint32s(self) -> npt.NDArray[Any]:
        return self._big_endian(">u4")

    def _big_endian(self, dtype: str) -> npt.NDArray[Any]:
        """An overlapping view: element i is the number whose first byte is byte i."""
        width = np.dtype(dtype).itemsize
        count = max(len(self.data) - width + 1, 0)
        return np.ndarray((count,), dtype=dtype, buffer=self.data, strides=(1,))


@dataclass(frozen=True)
class Cells:
    """One column of every row: its flag (`NO_TUPLE` where the row has no tuple) and where its text lies."""

    flags: Flags
    starts: Positions
    ends: Positions

    @cached_property
    def is_text(self) -> npt.NDArray[np.bool_]:
        found: npt.NDArray[np.bool_] = self.flags == TEXT
        return found

    @cached_property
    def are_texts(self) -> bool:
        """All of them, as nearly always."""
        return all_hold(self.is_text)

    def filled_from(self, other: Cells) -> Cells:
        """Take `other`'s text wherever ours is unchanged TOAST.

        A null of `other` says nothing: what lies in TOAST is never null, but a key-only tuple
        has nulls for all that is not key.
        """
        known = (self.flags == UNCHANGED) & (other.flags == TEXT)
        return Cells(
            np.where(known, other.flags, self.flags),
            np.where(known, other.starts, self.starts),
            np.where(known, other.ends, self.ends),
        )

    def text(self, payloads: Payloads) -> Any:
        """The column as an Arrow binary array, null where there is no text.

        The bytes are not moved to be cut out: an array over the payloads' own bytes whose offsets
        alternate between the start and the end of a value has the values as its even elements.
        """
        count = len(self.flags)
        bounds = np.empty(2 * count, dtype=np.int32)
        bounds[0::2] = self.starts
        bounds[1::2] = self.ends
        if count == 0:
            return pa.array([], pa.binary())
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(payloads.data)]
        alternating = pa.BinaryArray.from_buffers(pa.binary(), 2 * count - 1, buffers)
        valid = None if self.are_texts else pa.py_buffer(np.packbits(self.is_text, bitorder="little"))
        even = pa.Array.from_buffers(pa.int32(), count, [valid, pa.py_buffer(_even_numbers(count))])
        return pc.take(alternating, even, boundscheck=False)


@lru_cache(maxsize=1)
def _even_numbers(count: int) -> npt.NDArray[np.int32]:
    return np.arange(0, 2 * count, 2, dtype=np.int32)


def walk(payloads: Payloads, rows: Positions, at: Positions, column_count: int) -> tuple[list[Cells], Positions]:
    """Find every column of the tuples that start at `at` in the rows `rows`.

    Returns the cells of each column for all rows of the batch, and where the tuples end.
    """
    ends = payloads.ends if len(rows) == len(payloads) else payloads.ends[rows]
    require(at + _COUNT_BYTES <= ends, rows, "it ends before its tuple")
    require(payloads.uint16(at) == column_count, rows, f"its tuple does not have {column_count} columns")
    at = at + _COUNT_BYTES
    columns = []
    for _ in range(column_count):
        require(at < ends, rows, "it ends inside its tuple")
        cells = _cells(payloads, rows, ends, at)
        columns.append(_for_all_rows(payloads, rows, cells))
        at = cells.ends
    return columns, at


def _cells(payloads: Payloads, rows: Positions, ends: Positions, at: Positions) -> Cells:
    """The column whose flags are at `at`. The text of one that has none is empty, just after the flag.

    A length that reaches past the row's end shows when the next column, or the row's end, is looked for.
    """
    flags = payloads.data[at]
    is_text = flags == TEXT
    if all_hold(is_text):
        starts = at + (_FLAG_BYTES + _LENGTH_BYTES)
        require(starts <= ends, rows, "it ends inside a length")
        return Cells(flags, starts, starts + payloads.uint32(at + _FLAG_BYTES))
    require(is_text | (flags == NULL) | (flags == UNCHANGED), rows, "a column has an unknown flag")
    starts = at + _FLAG_BYTES + np.where(is_text, _LENGTH_BYTES, 0)
    require(starts <= ends, rows, "it ends inside a length")
    stops = starts.copy()
    stops[is_text] += payloads.uint32(at[is_text] + _FLAG_BYTES)
    return Cells(flags, starts, stops)


def _for_all_rows(payloads: Payloads, rows: Positions, cells: Cells) -> Cells:
    if len(rows) == len(payloads):
        return cells
    flags = np.full(len(payloads), NO_TUPLE, dtype=np.uint8)
    starts, ends = payloads.starts.copy(), payloads.starts.copy()
    flags[rows], starts[rows], ends[rows] = cells.flags, cells.starts, cells.ends
    return Cells(flags, starts, ends)


def require(holds: npt.NDArray[np.bool_], rows: Positions, reason: str) -> None:
    """Blame the first of `rows` for which something does not hold."""
    if not all_hold(holds):
        raise MalformedError(int(rows[np.argmin(holds)]), reason)


def all_hold(holds: npt.NDArray[np.bool_]) -> bool:
    # Counting is several times faster than asking for all.
    return bool(np.count_nonzero(holds) == len(holds))
