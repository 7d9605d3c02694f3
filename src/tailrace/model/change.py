"""The columns of a change, of an event and of a state: what decoding gives, and what a lake table takes.

A *change* is one insert, update, delete or truncate, decoded. An *event* is what a change does to one key. A *state* is
the result of all changes of one key. Each has the table's columns and, beside them, columns of our own. Where a value
is one that its column cannot hold, there is one more (`model.rows.exact`).

A table without a key is a multiset: its rows are told apart by all their values, and several may be equal. There an
event and a state are a row and how many more of it there are than before (`COUNT`); rows are equal as in
`model.rows.row`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from tailrace.model.rows.lake_types import arrow_type
from tailrace.model.table import TableSchema

PREFIX = "tailrace:"
"""How the names of our own columns begin. A source has a problem with a table that has such a column, in any case of
letters; every other name is free."""

OP = f"{PREFIX}op"
"""`c` insert, `u` update, `d` delete, `t` truncate."""
SEQ = f"{PREFIX}seq"
"""The sequence number of a change's transaction."""
POS = f"{PREFIX}pos"
"""Where a change lies in the log."""
ORDINAL = f"{PREFIX}ordinal"
"""The ordinal of a change's commit."""
XID = f"{PREFIX}xid"
COMMIT_TS = f"{PREFIX}commit_ts"
BEFORE = f"{PREFIX}before"
"""The old row, or its key columns alone: what the source sent of it; null where it sent nothing."""
UNCHANGED = f"{PREFIX}unchanged"
"""Names of columns that the source left out because they had not changed. In a state: columns to take from the base."""

KEY = f"{PREFIX}key"
"""Struct of the key columns that an event concerns."""
PART = f"{PREFIX}part"
"""Orders the two events of one change."""
DELETED = f"{PREFIX}deleted"
"""The key has no row after this event, or in this state."""
FRESH = f"{PREFIX}fresh"
"""The key had no row before this event; in a state: the base has no such key."""
FROM = f"{PREFIX}from"
"""The key that an event's row had before, where it moved and left columns out."""
ORIGIN = f"{PREFIX}origin"
"""The key to take a state's left-out columns from, where the row moved."""

COUNT = f"{PREFIX}count"
"""Of a row without a key: how many were added, less those that went; in a state never 0."""

METADATA = {
    OP: pa.string(),
    SEQ: pa.int64(),
    POS: pa.int64(),
    ORDINAL: pa.int64(),
    XID: pa.int64(),
    COMMIT_TS: pa.timestamp("us", tz="UTC"),
}
"""Where a change stands, the same for every table."""
EVENT_METADATA = (KEY, SEQ, POS, PART, DELETED, FRESH, FROM, UNCHANGED)
STATE_METADATA = (DELETED, FRESH, UNCHANGED, ORIGIN)
"""Of a table with a key. A state of one without has `COUNT` alone."""

Decode = Callable[[Any, TableSchema], Any]
"""A batch of a table's log records, all of one shape, to changes as `change_schema` says. Every source has one."""
WhyCopy = Callable[[Mapping[str, Any], Mapping[str, Any]], str | None]
"""An old and a new definition of a table to a reason why a copy must be made again. Every source has one."""


def row_schema(schema: TableSchema) -> Any:
    """A table's rows in Arrow."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in schema.columns])


def change_schema(schema: TableSchema) -> Any:
    """A table's changes in Arrow."""
    columns = list(row_schema(schema))
    return pa.schema(
        [
            *(pa.field(name, type_) for name, type_ in METADATA.items()),
            pa.field(BEFORE, pa.struct(columns)),
            pa.field(UNCHANGED, pa.list_(pa.string())),
            *columns,
        ]
    )
