"""Parts of a scripted table's rows, as the door's chunks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.doors.history import Row, from_json

from tailrace.model.table import TableId, TableSchema
from tailrace.source.door.rows import Cursor


@dataclass(frozen=True)
class KeyRange:
    """The rows of a table with start <= key < stop; None is no bound."""

    table: TableId
    start: tuple[Any, ...] | None = None
    stop: tuple[Any, ...] | None = None
    condition: str | None = None
    bytes: int = 0

    def holds(self, row: Row, schema: TableSchema) -> bool:
        key = values_of(row, schema.key, schema)
        return (self.start is None or self.start <= key) and (self.stop is None or key < self.stop)


@dataclass(frozen=True)
class CursorRange:
    """The rows after one cursor and up to another, by some columns; None is no bound. A cursor is JSON texts."""

    table: TableId
    order: tuple[str, ...]
    after: Cursor | None = None
    upto: Cursor | None = None
    condition: str | None = None

    def holds(self, row: Row, schema: TableSchema) -> bool:
        values = values_of(row, self.order, schema)
        return (self.after is None or self._parsed(self.after, schema) < values) and (
            self.upto is None or values <= self._parsed(self.upto, schema)
        )

    def _parsed(self, cursor: Cursor, schema: TableSchema) -> tuple[Any, ...]:
        row = {name: json.loads(text) for name, text in zip(self.order, cursor, strict=True)}
        return values_of(row, self.order, schema)


@dataclass(frozen=True)
class KeyList:
    """The rows that have one of some keys."""

    table: TableId
    keys: frozenset[tuple[Any, ...]]
    condition: str | None = None

    def holds(self, row: Row, schema: TableSchema) -> bool:
        return values_of(row, schema.key, schema) in self.keys


def values_of(row: Row, names: Sequence[str], schema: TableSchema) -> tuple[Any, ...]:
    return tuple(from_json(row[name], schema.column(name).type) for name in names)
