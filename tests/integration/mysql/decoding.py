"""A real server's binlog through the product's own reader and decoder, without the product's stream."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from tests.integration.mysql.binlog import raw_events
from tests.mysql_servers import MySqlServer

from tailrace.log.playback.play import PLAYBACK
from tailrace.model.kind import Kind
from tailrace.model.table import TableSchema
from tailrace.source.mysql.events.event import Event, EventKind, read_event, read_format
from tailrace.source.mysql.events.row_events import cut, is_rows, read_rows
from tailrace.source.mysql.events.table_map import AnnouncedTable, read_table_map
from tailrace.source.mysql.events.transaction_payload import events_inside
from tailrace.source.mysql.values.row_changes import decode


@dataclass
class Taken:
    """What was read of a binlog."""

    events: list[Event] = field(default_factory=list)
    tables: list[AnnouncedTable] = field(default_factory=list)
    """In the order in which they were announced."""
    rows: dict[str, list[tuple[AnnouncedTable, Kind, bytes]]] = field(default_factory=dict)
    """By the name of the table: each row's table, kind and payload."""

    @property
    def kinds(self) -> list[int]:
        return [event.kind for event in self.events]

    def announced(self, name: str) -> AnnouncedTable:
        return next(table for table in self.tables if table.table.name == name)

    def changes(self, name: str) -> list[dict[str, Any]]:
        """The decoded changes of a table that had one shape."""
        return changes_of(self.rows[name]).to_pylist()


def taken(server: MySqlServer, begin: tuple[str, int]) -> Taken:
    found, known = Taken(), dict[int, AnnouncedTable]()
    has_checksum = is_mariadb = False
    for data in raw_events(server, begin):
        event = read_event(data, has_checksum=has_checksum)
        if event.kind == EventKind.FORMAT:
            format_ = read_format(event)
            has_checksum, is_mariadb = format_.has_checksum, format_.is_mariadb
        inside = list(events_inside(event)) if event.kind == EventKind.TRANSACTION_PAYLOAD else []
        for each in (event, *inside):
            found.events.append(each)
            _take(each, found, known, is_mariadb)
    return found


def _take(event: Event, found: Taken, known: dict[int, AnnouncedTable], is_mariadb: bool) -> None:
    if event.kind == EventKind.TABLE_MAP:
        table = read_table_map(event, is_mariadb=is_mariadb)
        known[table.table_id] = table
        found.tables.append(table)
    elif is_rows(event.kind):
        rows = read_rows(event)
        table = known[rows.table_id]
        if table.problem is None and not rows.is_partial_json:
            more = [(table, rows.kind, payload) for payload in cut(event, rows, table).payloads()]
            found.rows.setdefault(table.table.name, []).extend(more)


def records_of(rows: Iterable[tuple[Kind, bytes]]) -> pa.Table:
    """Log records, as playback gives them."""
    kinds, payloads = zip(*rows, strict=True)
    count = len(kinds)
    numbers = list(range(count))
    columns = [numbers, numbers, [7] * count, [8] * count, [9] * count, [10] * count, kinds, [1] * count, payloads]
    return pa.table(
        [pa.array(column, each.type) for column, each in zip(columns, PLAYBACK, strict=True)], schema=PLAYBACK
    )


def changes_of(rows: list[tuple[AnnouncedTable, Kind, bytes]], schema: TableSchema | None = None) -> pa.RecordBatch:
    schema = schema or rows[0][0].schema(1)
    # What a lake keeps of a shape must be enough.
    kept = TableSchema.from_json(schema.to_json())
    return decode(records_of((kind, payload) for _, kind, payload in rows), kept)
