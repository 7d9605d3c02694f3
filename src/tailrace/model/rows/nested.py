"""Arrays in a column, taken apart: many of Arrow's functions know only plain values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Words = Callable[[Any], Any]
"""Numbers of 64 bits for each value of a plain array, a row each, equal where the values are; null is a value too."""


def is_nested(type_: Any) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_map(type_))


def as_binary(values: Any, words: Words) -> Any:
    """Lists or maps as binary values that are equal where those are: the words of their elements, one after another."""
    offsets = values.offsets.to_numpy().astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    parts = (values.keys, values.items) if pa.types.is_map(values.type) else (values.values,)
    found = [words(part.slice(first, last - first)) for part in parts]
    data = np.ascontiguousarray(np.concatenate(found, axis=1))
    bounds = (offsets - first) * data.shape[1] * 8
    validity = None if not values.null_count else pc.is_valid(values).buffers()[1]
    buffers = [validity, pa.py_buffer(bounds), pa.py_buffer(data)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(values), buffers, values.null_count)


def replaced(column: Any, wants: Any, values: Any) -> Any:
    """The column with other values, in order, where `wants` is true."""
    if not is_nested(column.type):
        return pc.replace_with_mask(column, pa.array(wants), values)
    rows = np.arange(len(column))
    rows[wants] = len(column) + np.arange(int(wants.sum()))
    return pa.concat_arrays([column, values.cast(column.type)]).take(pa.array(rows))
