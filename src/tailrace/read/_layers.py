"""A table as of a commit that is not published yet: the published rows with newer states laid over.

base   k1 k2 k3            published version
tail   k2' k3 deleted k4   compacted states of the log after it
view   k1 k2' k4

Of a table without a key, the tail says how many of each row to take away or to add.

What is laid over is the same for every engine. How it is laid over is the engine's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.changes.states import fill_moved
from tailrace.model.change import COUNT, DELETED, FRESH, ORIGIN, PREFIX, UNCHANGED
from tailrace.model.rows.exact import EXACT, padded, with_exact
from tailrace.model.rows.row import repeated
from tailrace.model.table import TableSchema

ROW = f"{PREFIX}row"
"""A number of each row that goes."""


@dataclass(frozen=True)
class Layers:
    """A tail, by what becomes of the base's rows."""

    key: tuple[str, ...]
    touched: pa.Table
    """Keys whose base row no longer counts, if there is one."""
    whole: pa.Table
    """Rows that need nothing of the base."""
    partial: pa.Table
    """Rows that take the columns in `UNCHANGED` from the base row of their key, which is there."""
    gone: pa.Table
    """Rows of a table without a key, each once, with a `ROW` of its own. The base has as many
    of them as `COUNT` says, which no longer count. Rows are equal as in `model.rows.row`."""
    exact: str | None = None
    """The column for values that others cannot hold (`model.rows.exact`), if the base and the tail have one. A partial
    row has the base row's texts of the columns in `UNCHANGED`, and its own."""


def layers(
    states: pa.Table, schema: TableSchema, rows_of: Callable[[pa.Table], pa.Table], exact: str | None = None
) -> Layers:
    """`rows_of` gives the base rows of some keys: a row that moved takes what it left out from its old one. `exact` is
    the base's column for what its others cannot hold; where it has none, no state does."""
    if not schema.key:
        return _without_key(_with_base_names(states, exact), schema, exact)
    states = _with_base_names(fill_moved(states, schema, lambda keys: _renamed(rows_of(keys), exact, EXACT)), exact)
    upserts = states.filter(pc.invert(states.column(DELETED))).drop_columns([DELETED, FRESH, ORIGIN])
    is_partial = pc.is_valid(upserts.column(UNCHANGED))
    return Layers(
        schema.key,
        touched=states.filter(pc.invert(states.column(FRESH))).select(list(schema.key)),
        whole=upserts.filter(pc.invert(is_partial)).drop_columns([UNCHANGED]),
        partial=upserts.filter(is_partial),
        gone=states.slice(0, 0),
        exact=exact,
    )


def _with_base_names(states: pa.Table, exact: str | None) -> pa.Table:
    """The states with the base's columns."""
    return _renamed(padded(states), EXACT, exact) if exact else with_exact(states, None)


def _renamed(rows: pa.Table, old: str | None, new: str | None) -> pa.Table:
    return rows.rename_columns([new if old == name and new else name for name in rows.column_names])


def _without_key(states: pa.Table, schema: TableSchema, exact: str | None) -> Layers:
    counts = states.column(COUNT)
    rows, none = states.select([*schema.names, *([exact] if exact else [])]), states.slice(0, 0)
    more = pc.greater(counts, 0)
    added = pa.Table.from_batches(repeated(rows.filter(more), counts.filter(more).to_numpy()), rows.schema)
    less = pc.less(counts, 0)
    gone = rows.filter(less).append_column(COUNT, pc.negate(counts.filter(less)))
    gone = gone.append_column(ROW, pa.array(range(gone.num_rows), pa.int64()))
    return Layers((), none, added, none, gone, exact)
