"""From a table's changes to its states, with a key and without: in two steps, so that events can be dealt out between
them. Events of one key, or of equal rows, must meet."""

from __future__ import annotations

import pyarrow as pa

from tailrace.changes.compaction import compact
from tailrace.changes.events import events
from tailrace.changes.rows import added_up, row_counts
from tailrace.model.table import TableSchema


def events_of(changes: pa.Table, schema: TableSchema) -> pa.Table:
    """What changes of this shape do; those of several parts of a range may be put together in any order."""
    return events(changes, schema.key, schema.names) if schema.key else row_counts(changes, schema)


def states_of(found: pa.Table, schema: TableSchema) -> pa.Table:
    """What the events come to: the table's columns, and `STATE_METADATA` or `COUNT`."""
    return compact(found, schema.names) if schema.key else added_up(found)
