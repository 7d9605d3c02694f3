"""Sources during whose work a test does something."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from tests.doors.scripted import ScriptedSource

from tailrace.model.table import TableId, TableSchema
from tailrace.source.door.rows import SnapshotPoint
from tailrace.source.door.values import SourceTable
from tailrace.source.postgres.source import PostgresSource


class _Disturbance:
    """What happens when rows have been read, or are to be planned."""

    def __init__(self) -> None:
        self.disturb: Callable[[TableId, str, int], None] = lambda table, what, number: None
        """Called with what is done to a table, and the how many-th time that is."""
        self.done: Counter[tuple[TableId, str]] = Counter()

    def begin(self, disturb: Callable[[TableId, str, int], None]) -> None:
        """From now on, counted from one."""
        self.disturb = disturb
        self.done.clear()

    def happens(self, table: TableId, what: str) -> None:
        self.done[table, what] += 1
        self.disturb(table, what, self.done[table, what])


class DisturbedSource(ScriptedSource):
    """A scripted one."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.disturbance = _Disturbance()

    def read_chunk(self, point: SnapshotPoint, chunk: Any, schema: TableSchema) -> Iterator[Any]:
        yield from list(super().read_chunk(point, chunk, schema))
        self.disturbance.happens(schema.table, "read")

    def key_chunks(self, point: SnapshotPoint, table: SourceTable, *arguments: Any, **named: Any) -> list[Any]:
        self.disturbance.happens(table.table, "plan")
        return super().key_chunks(point, table, *arguments, **named)


class DisturbedPostgres(PostgresSource):
    """A real one."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.disturbance = _Disturbance()

    def read_chunk(self, point: SnapshotPoint, chunk: Any, schema: TableSchema) -> Iterator[Any]:
        yield from list(super().read_chunk(point, chunk, schema))
        self.disturbance.happens(schema.table, "read")
