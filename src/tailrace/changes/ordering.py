"""The order of changes, found without moving them.

To gather a million rows of a table takes longer than to decode them, so whoever needs them in order works on their
numbers and gathers once, at the end, what is left.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa


def ordered(table: pa.Table, columns: Sequence[str]) -> np.ndarray:
    """The numbers of the rows in the order of some columns of whole numbers, the first of which counts most."""
    values = [table.column(name).to_numpy() for name in columns]
    return np.arange(table.num_rows) if _is_ordered(values) else np.lexsort(values[::-1])


def in_order(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    """The table's rows in that order, each column in one piece. Those that are in order already stay where they are."""
    values = [table.column(name).to_numpy() for name in columns]
    table = table if _is_ordered(values) else table.take(pa.array(np.lexsort(values[::-1])))
    return table.combine_chunks()


def _is_ordered(columns: Sequence[np.ndarray]) -> bool:
    later = np.zeros(max(0, len(columns[0]) - 1), bool)
    same = ~later
    for values in columns:
        later |= same & (values[1:] > values[:-1])
        same &= values[1:] == values[:-1]
    return bool((later | same).all())
