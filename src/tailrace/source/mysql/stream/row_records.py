"""Events with rows as log records: a table's shape before its first row, then a record for each row.

A change that cannot be read marks its table, once in a transaction, so that it is copied again.
"""

from __future__ import annotations

from tailrace.model.kind import Kind
from tailrace.source.mysql.events.event import Event, unreadable
from tailrace.source.mysql.events.row_events import cut, read_rows
from tailrace.source.mysql.events.table_map import AnnouncedTable, read_table_map
from tailrace.source.mysql.stream.record_parts import RecordParts
from tailrace.source.mysql.stream.relations import LoggedShapes
from tailrace.source.mysql.stream.transactions import OpenTransaction

SYSTEM_DATABASES = ("mysql", "sys", "performance_schema", "information_schema")
ROLLED_BACK = "a transaction that was rolled back changed it, and it may keep some of that"
_PARTIAL = "a document was sent as differences to the old one; set global binlog_row_value_options = ''"


class RowRecords:
    """Remembers the tables of the file at hand; never a row. For one thread."""

    def __init__(self, records: RecordParts) -> None:
        self.shapes = LoggedShapes()
        self._records = records
        self._tables: dict[int, AnnouncedTable] = {}

    def begin_file(self) -> None:
        """The numbers of tables are those of another file."""
        self._tables.clear()

    def announce(self, event: Event, *, is_mariadb: bool) -> None:
        """A table whose rows may follow."""
        table = read_table_map(event, is_mariadb=is_mariadb)
        self._tables[table.table_id] = table

    def take(self, event: Event, ordinal: int, transaction: OpenTransaction) -> None:
        """The rows of one event."""
        rows = read_rows(event)
        if rows.is_empty:
            return
        table = self._tables.get(rows.table_id)
        if table is None:
            raise unreadable(event.kind, "its table was not announced")
        if table.table.namespace in SYSTEM_DATABASES:
            return
        transaction.touched[table.table_id] = table
        problem = _PARTIAL if rows.is_partial_json else table.problem
        if problem is not None:
            self.mark(ordinal, transaction, table, problem)
            return
        schema = table.schema(self.shapes.relation(table.table))
        if self.shapes.is_new(schema):
            self._records.add(ordinal, transaction.xid, Kind.SCHEMA, schema.to_json(), schema.relation)
        self._records.add_rows(ordinal, transaction.xid, rows.kind, cut(event, rows, table), schema.relation)

    def mark(self, ordinal: int, transaction: OpenTransaction, table: AnnouncedTable, reason: str) -> None:
        """Say, once in a transaction, that a change of the table could not be read."""
        relation = self.shapes.relation(table.table)
        if relation not in transaction.unsent:
            transaction.unsent.add(relation)
            self._records.add(ordinal, transaction.xid, Kind.UNSENT, reason.encode(), relation)
