"""The columns of a change and of a state: what decoding gives, and what a lake table takes.

A *change* is one insert, update, delete or truncate, decoded. A *state* is the result of all changes of one key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from tailrace.model.lake_types import arrow_type
from tailrace.model.table import TableSchema

METADATA = {
    "_op": pa.string(),
    "_seq": pa.int64(),
    "_pos": pa.int64(),
    "_ordinal": pa.int64(),
    "_xid": pa.int64(),
    "_commit_ts": pa.timestamp("us", tz="UTC"),
}
"""Where a change stands, the same for every table: `c` insert, `u` update, `d` delete, `t` truncate; its
transaction's sequence number and its position in the log; its commit's ordinal, its xid and its commit time."""
RESERVED = (*METADATA, "_before", "_unchanged")
"""Names a table's own columns must not have."""

STATE_METADATA = ("_deleted", "_fresh", "_unchanged", "_origin")
"""Beside a state's columns: the key is gone; the base has no such key; columns to take from the base; the key to
take them from, where the row moved."""

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
            pa.field("_before", pa.struct(columns)),
            pa.field("_unchanged", pa.list_(pa.string())),
            *columns,
        ]
    )
