"""Rows that changed their key and left columns out: their values lie in the base, under the old key."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from tailrace.errors import ResyncError
from tailrace.model.change import ORIGIN, UNCHANGED
from tailrace.model.exact import EXACT, exact_of, padded, with_exact
from tailrace.model.key import key_of
from tailrace.model.table import TableSchema


def fill_moved(states: pa.Table, schema: TableSchema, rows_of: Callable[[pa.Table], pa.Table]) -> pa.Table:
    """`states` with every moved row complete. `rows_of` gives the base rows of some keys.

    Such rows are rare, so they are filled one by one; all others pass through untouched.
    """
    origins = states.column(ORIGIN).combine_chunks()
    if origins.null_count == len(origins):
        return states
    table, key = schema.table, schema.key
    wanted = pa.Table.from_struct_array(origins.drop_null())
    base = {key_of(row, key): row for row in rows_of(wanted).to_pylist()}
    moved = origins.is_valid()
    states = padded(states)
    rows = states.filter(moved).to_pylist()
    for row in rows:
        origin = key_of(row[ORIGIN], key)
        if origin not in base:
            raise ResyncError.of(table, f"row {origin} is missing in the lake")
        texts = dict(base[origin].get(EXACT) or ())
        exact = dict(row[EXACT] or ()) | {name: texts[name] for name in row[UNCHANGED] if name in texts}
        row.update({name: base[origin][name] for name in row[UNCHANGED]} | {UNCHANGED: None, ORIGIN: None})
        row[EXACT] = sorted(exact.items()) or None
    found = pa.concat_tables([states.filter(origins.is_null()), pa.Table.from_pylist(rows, schema=states.schema)])
    return with_exact(found, exact_of(found))
