"""Where the values of logged rows lie, a batch of one table and one shape at a time.

A record of a change is one row of an event of the binlog, as the server sent it:

    0  image  [image]                       all columns are there: nearly always
    1  bits [bits]  image  [image]          those are there whose bit is 1: with a row image that is not full

An insert has the new image, a delete the old one, an update the old one and then the new one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.kind import Kind
from tailrace.source.mysql.values import row_kernel as kernel
from tailrace.source.mysql.values.row_kernel import ABSENT, NO_ROW

Array = npt.NDArray[Any]

_IMAGES = np.zeros(256, np.int64)
_IMAGES[Kind.INSERT] = kernel.NEW
_IMAGES[Kind.UPDATE] = kernel.OLD | kernel.NEW
_IMAGES[Kind.DELETE] = kernel.OLD
_WRONG = {
    kernel.TRUNCATED: "it ends inside a row",
    kernel.TOO_LONG: "it does not end with its row",
    kernel.ODD_FORM: "it is no row",
}


class MalformedRowError(Exception):
    """Row `row` of the batch is not what its shape says."""

    def __init__(self, row: int, reason: str) -> None:
        super().__init__(reason)
        self.row = row
        self.reason = reason


@dataclass(frozen=True)
class ColumnCells:
    """One column of all rows: where each value's bytes begin, and how many there are, or why there are none."""

    data: Array
    begins: Array
    lengths: Array

    def __len__(self) -> int:
        return len(self.begins)

    @cached_property
    def is_there(self) -> Array:
        found: Array = self.lengths >= 0
        return found

    @property
    def is_absent(self) -> Array:
        found: Array = self.lengths == ABSENT
        return found

    @property
    def is_row(self) -> Array:
        found: Array = self.lengths != NO_ROW
        return found

    def filled_from(self, other: ColumnCells) -> ColumnCells:
        """Take `other`'s value wherever the source left ours out and it has one, which may be null."""
        known = self.is_absent & (other.lengths != ABSENT) & other.is_row
        if not known.any():
            return self
        begins = np.where(known, other.begins, self.begins)
        return ColumnCells(self.data, begins, np.where(known, other.lengths, self.lengths))

    @property
    def mask(self) -> Array | None:
        """True where there is no value; None where there is one everywhere."""
        return None if self.is_there.all() else ~self.is_there

    def numbers(self, *, is_big_endian: bool = False) -> Array:
        """Unsigned, of up to eight bytes; 0 where there is none."""
        found: Array = kernel.numbers(self.data, self.begins, self.lengths, is_big_endian)
        return found

    def bytes(self) -> Any:
        """The values as a binary array."""
        count = len(self)
        bounds = np.empty(2 * count, np.int32)
        bounds[0::2] = self.begins
        bounds[1::2] = self.begins + np.maximum(self.lengths, 0)
        if count == 0:
            return pa.array([], pa.binary())
        # Its even elements are the values, as the odd ones lie between them.
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(self.data)]
        alternating = pa.BinaryArray.from_buffers(pa.binary(), 2 * count - 1, buffers)
        even = pa.array(np.arange(0, 2 * count, 2, dtype=np.int32), mask=self.mask)
        return pc.take(alternating, even, boundscheck=False)


@dataclass(frozen=True)
class Images:
    """The old and the new row of each record, by column."""

    old: list[ColumnCells]
    new: list[ColumnCells]

    @classmethod
    def of(cls, payload: Any, kinds: Array, widths: list[int]) -> Images:
        """Look at an Arrow binary array without copying it. `MalformedRowError` for anything that is no such row."""
        array = payload.cast(pa.binary())
        _, offsets_buffer, data_buffer = array.buffers()
        offsets = np.frombuffer(offsets_buffer or bytes(4), np.int32)[array.offset : array.offset + len(array) + 1]
        data = np.frombuffer(data_buffer or b"", np.uint8)
        rows = np.stack([offsets[:-1].astype(np.int64), offsets[1:].astype(np.int64), _IMAGES[kinds]])
        shape = (len(widths), len(array))
        # A value that is not there begins somewhere in its row too: `bytes` needs places that grow.
        old, new = ((np.tile(rows[0], (shape[0], 1)), np.full(shape, NO_ROW, np.int64)) for _ in range(2))
        wrong = kernel.find(data, rows, np.array(widths, np.int64), old, new)
        if wrong >= 0:
            raise MalformedRowError(wrong // 4, _WRONG[wrong % 4])
        return cls(*([ColumnCells(data, *column) for column in zip(*image, strict=True)] for image in (old, new)))
