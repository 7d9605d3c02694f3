"""When two rows of a table without a key are equal: where the source writes all their values alike.

Null is null and NaN is NaN. Minus zero is not zero, unlike in a key (`model.rows.key`): the source shows which of the
two a deleted row had, and the other one stays.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.rows.nested import as_binary, is_nested

REPEATED_AT_ONCE = 64 << 10


def row_codes(columns: Iterable[Any]) -> tuple[Any, int]:
    """A number for each row of some columns, equal exactly where the rows are, and how many there are. A column is an
    array or a chunked one; one at a time is looked at."""
    codes, count = np.zeros(0, np.int64), 0
    for index, column in enumerate(columns):
        part, different = _numbers(column)
        if index:
            # Renumbering after each column keeps the product of two counts within 64 bits.
            part = np.unique(codes * different + part, return_inverse=True)[1]
            different = int(part.max()) + 1 if len(part) else 0
        codes, count = part, different
    return codes, count


def _numbers(column: Any) -> tuple[Any, int]:
    """A number for each value, without gaps, and how many there are."""
    if isinstance(column, pa.ChunkedArray) and len(column) and not is_nested(column.type):
        # Chunk by chunk: text is not copied into one piece.
        chunks = [exact(chunk) for chunk in column.chunks if len(chunk)]
        encoded = pa.chunked_array(chunks).dictionary_encode(null_encoding="encode")
        parts = [chunk.indices.to_numpy(zero_copy_only=False) for chunk in encoded.chunks]
        return np.concatenate(parts).astype(np.int64), len(encoded.chunk(0).dictionary)
    if isinstance(column, pa.ChunkedArray):
        # Arrays have numbers that mean nothing in another chunk.
        column = pa.concat_arrays(column.chunks) if column.chunks else pa.array([], column.type)
    encoded = exact(column).dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64), len(encoded.dictionary)


def exact(values: Any) -> Any:
    """An array whose values compare as the rows' do: a float is its bits, and NaN has one pattern of them. An array of
    arrays is made of the numbers that their elements have here."""
    if is_nested(values.type):
        return as_binary(values, _numbered)
    if not pa.types.is_floating(values.type):
        return values
    one_nan = pc.if_else(pc.is_nan(values), pa.scalar(math.nan, values.type), values)
    return one_nan.view(pa.int64() if pa.types.is_float64(values.type) else pa.int32())


def _numbered(values: Any) -> Any:
    encoded = exact(values).dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64).reshape(-1, 1)


def repeated(rows: Any, counts: Any) -> Iterator[Any]:
    """Batches with each row of a table as many times as its count says, however many that is."""
    ends = np.cumsum(counts)
    for begin in range(0, int(ends[-1]) if len(ends) else 0, REPEATED_AT_ONCE):
        end = min(begin + REPEATED_AT_ONCE, int(ends[-1]))
        yield from rows.take(pa.array(ends.searchsorted(np.arange(begin, end), "right"))).to_batches()
