"""Which states fit a growing table: one that is copied by windows and does not have all its rows yet.

Every row that it has is the source's as of the table's stamp; a row that is missing lies in a range that was not read
yet. So a key may be there or not, and only a state that takes columns from a row which is missing cannot be laid over.
There is nothing to do for it, because its range brings the row whole, but in one case: the row moved here, perhaps into
a range that was read before. Its key has to be read again.

    states   k1 whole   k2 deleted   k3 without big   k4 without big, moved here from k9
    table    -          -            -                k4' (an older row of that key)
    becomes  k1         -            -                -, and k4 is to be read again
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.change import DELETED, ORIGIN, UNCHANGED


def fitting(
    states: pa.Table,
    key: Sequence[str],
    is_there: np.ndarray,
    are_there: Callable[[pa.Table], np.ndarray],
    *,
    tells_all: bool = False,
) -> tuple[pa.Table, pa.Table]:
    """The states, those that cannot be completed as deletes, and the keys that have to be read again.

    `is_there` says which of the states' keys have a row, and `are_there` which of some keys. Where rows are read in
    another order than the key's, one may come into a range that was read before without moving: `tells_all`.
    """
    partial = states.column(UNCHANGED).is_valid().to_numpy()
    if not partial.any():
        return states, states.slice(0, 0).select(list(key))
    origins = states.column(ORIGIN).combine_chunks()
    moved = origins.is_valid().to_numpy(zero_copy_only=False)
    has_row = is_there.copy()
    if moved.any():
        has_row[moved] = are_there(pa.Table.from_struct_array(origins.drop_null()))
    unfit = partial & ~has_row
    again = states.filter(pa.array(unfit if tells_all else unfit & moved)).select(list(key))
    return _deleted(states, pa.array(unfit)), again


def _deleted(states: pa.Table, chosen: pa.Array) -> pa.Table:
    for name, value in ((DELETED, True), (UNCHANGED, None), (ORIGIN, None)):
        column = states.column(name)
        values = pc.if_else(chosen, pa.scalar(value, column.type), column)
        states = states.set_column(states.schema.get_field_index(name), name, values)
    return states
