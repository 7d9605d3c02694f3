"""From a table's changes to its states, with a key and without: in two steps, so that events can be dealt out between
them. Events of one key, or of equal rows, must meet."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from tailrace.changes.compaction import compact
from tailrace.changes.events import events
from tailrace.changes.rows import added_up, row_counts
from tailrace.errors import ResyncError
from tailrace.model.change import ORIGIN, UNCHANGED
from tailrace.model.rows.exact import EXACT, exact_of, padded, with_exact
from tailrace.model.rows.key import key_of
from tailrace.model.table import TableSchema


def events_of(changes: pa.Table, schema: TableSchema) -> pa.Table:
    """What changes of this shape do; those of several parts of a range may be put together in any order."""
    return events(changes, schema.key, schema.names) if schema.key else row_counts(changes, schema)


def states_of(found: pa.Table, schema: TableSchema) -> pa.Table:
    """What the events come to: the table's columns, and `STATE_METADATA` or `COUNT`."""
    return compact(found, schema.names) if schema.key else added_up(found)


def fill_moved(states: pa.Table, schema: TableSchema, rows_of: Callable[[pa.Table], pa.Table]) -> pa.Table:
    """`states` with every moved row complete: what it left out lies in the base, under its old key. `rows_of` gives the
    base rows of some keys.

    Moved rows are rare, so they are filled one by one; all others pass through untouched.
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
    filled = pa.concat_tables([states.filter(origins.is_null()), pa.Table.from_pylist(rows, schema=states.schema)])
    return with_exact(filled, exact_of(filled))
