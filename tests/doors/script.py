"""What a test does to a scripted source: make tables, change rows, take rights away.

    script = Script(folder / "shop.jsonl")
    script.create_table("shop.orders", {"id": "bigint", "note": "string"}, key=["id"])
    script.transaction([Insert("shop.orders", {"id": 1, "note": "new"}), Update("shop.orders", (1,), {"note": "paid"})])
    assert script.state("shop.orders") == [{"id": 1, "note": "paid"}]

`state` is kept here, in dictionaries, and never read back from the file: an oracle that shares no code with the source.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.doors.history import Line, Row, append, to_json

from tailrace.model.position import SourcePosition
from tailrace.model.table import Column, TableId, TableSchema

Key = tuple[Any, ...]

FIRST_RELATION = 101


@dataclass(frozen=True)
class Insert:
    table: str
    row: Row


@dataclass(frozen=True)
class Update:
    table: str
    key: Key
    changes: Row
    """May change the key."""
    leave_out: Sequence[str] = ()
    """Columns that keep their value and are not sent, as a large value would not be."""


@dataclass(frozen=True)
class Delete:
    table: str
    key: Key


@dataclass(frozen=True)
class Truncate:
    table: str


@dataclass(frozen=True)
class Alter:
    """A new definition: columns added (null in old rows), dropped, renamed, or of another type."""

    table: str
    add: Mapping[str, str] = field(default_factory=dict)
    drop: Sequence[str] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    retype: Mapping[str, str] = field(default_factory=dict)
    rewrite: bool = False
    """All its rows may have changed, and no change tells of it."""


Step = Insert | Update | Delete | Truncate | Alter


@dataclass
class _Table:
    schema: TableSchema
    numbers: int
    """Columns it ever had: the next one's number is one more."""
    rows: dict[Key, Row] = field(default_factory=dict)

    def key_of(self, row: Row) -> Key:
        return tuple(row[name] for name in self.schema.key) or (len(self.rows),)


class Script:
    """The one writer of a script's tables; the source adds its own claims to the same file. One thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._tables: dict[str, _Table] = {}
        self._relations = 0
        path.touch()
        append(path, lambda history: None if history.server else {"server": secrets.token_hex(4)})

    def create_table(self, name: str, columns: Mapping[str, str], key: Sequence[str]) -> TableSchema:
        """`columns` are names and lake types."""
        namespace, _, bare = name.partition(".")
        numbered = enumerate(columns.items(), 1)
        made = tuple(Column(column, type_, type_.upper(), number) for number, (column, type_) in numbered)
        schema = _defined(TableSchema(TableId(namespace, bare), FIRST_RELATION + self._relations, made, tuple(key)))
        self._relations += 1
        self._tables[name] = _Table(schema, len(made))
        self._commit([{"define": _definition(schema)}])
        return schema

    def transaction(self, steps: Sequence[Step]) -> SourcePosition:
        """Commit these together. Returns where."""
        return self._commit([self._perform(step) for step in steps])

    def alter(self, name: str, **changes: Any) -> SourcePosition:
        """An `Alter` in a transaction of its own."""
        return self.transaction([Alter(name, **changes)])

    def drop_table(self, name: str) -> None:
        """One that is made under the same name later is another table."""
        del self._tables[name]
        self._commit([{"drop": name}])

    def forbid(self, name: str) -> None:
        """Take the right to read the table away."""
        append(self.path, lambda _: {"forbid": name})

    def allow(self, name: str) -> None:
        append(self.path, lambda _: {"allow": name})

    def stop_sending(self, name: str) -> None:
        """Done by another person: from now on, changes of the table are not sent."""
        append(self.path, lambda _: {"unsend": name})

    @contextmanager
    def outage(self) -> Iterator[None]:
        """The server cannot be reached inside the `with`."""
        away = self.path.with_suffix(".away")
        self.path.rename(away)
        try:
            yield
        finally:
            away.rename(self.path)

    def state(self, name: str) -> list[Row]:
        """The table's rows after everything that was done, by key."""
        rows = self._tables[name].rows
        return [rows[key] for key in sorted(rows)]

    def _commit(self, steps: list[Line]) -> SourcePosition:
        return append(self.path, lambda _: {"steps": steps})

    def _perform(self, step: Step) -> Line:
        """Do it to the table that is kept here; what the server's file says of it."""
        table = self._tables[step.table]
        match step:
            case Insert(name, row):
                whole = {column: row.get(column) for column in table.schema.names}
                assert table.key_of(whole) not in table.rows, f"{name} has a row {table.key_of(whole)}"
                table.rows[table.key_of(whole)] = whole
                return {"insert": name, "row": _written(whole)}
            case Update():
                return self._update(table, step)
            case Delete(name, key):
                del table.rows[key]
                return {"delete": name, "before": _written(_only_key(table.schema, key))}
            case Truncate(name):
                table.rows = {}
                return {"truncate": name}
            case Alter():
                return self._alter(table, step)

    def _update(self, table: _Table, step: Update) -> Line:
        assert not set(step.changes) & set(step.leave_out)
        row = table.rows.pop(step.key) | step.changes
        moved = table.key_of(row) != step.key
        table.rows[table.key_of(row)] = row
        sent = {name: None if name in step.leave_out else value for name, value in row.items()}
        before = _written(_only_key(table.schema, step.key)) if moved else None
        return {"update": step.table, "before": before, "row": _written(sent), "unchanged": list(step.leave_out)}

    def _alter(self, table: _Table, step: Alter) -> Line:
        kept = [
            replace(column, name=step.rename.get(column.name, column.name), type=type_, source_type=type_.upper())
            for column in table.schema.columns
            if column.name not in step.drop
            for type_ in [step.retype.get(column.name, column.type)]
        ]
        numbered = enumerate(step.add.items(), table.numbers + 1)
        added = [Column(name, type_, type_.upper(), number) for number, (name, type_) in numbered]
        key = tuple(step.rename.get(name, name) for name in table.schema.key)
        before = table.schema.definition or {}
        rewrites = before["rewrites"] + step.rewrite
        table.schema = _defined(
            replace(table.schema, columns=(*kept, *added), key=key), before["version"] + 1, rewrites
        )
        table.numbers += len(added)
        for key_of_row, row in table.rows.items():
            renamed = {step.rename.get(name, name): value for name, value in row.items() if name not in step.drop}
            table.rows[key_of_row] = renamed | dict.fromkeys(step.add)
        return {"define": _definition(table.schema)}


def _defined(schema: TableSchema, version: int = 1, rewrites: int = 0) -> TableSchema:
    """With what decides whether a copy of it is still right."""
    key = [column.number for column in schema.columns if column.name in schema.key]
    types = [[column.number, column.type] for column in schema.columns]
    return replace(schema, definition={"version": version, "types": types, "key": key, "rewrites": rewrites})


def _definition(schema: TableSchema) -> Any:
    return json.loads(schema.to_json())


def _written(row: Row) -> Row:
    return {name: to_json(value) for name, value in row.items()}


def _only_key(schema: TableSchema, key: Key) -> Row:
    return dict.fromkeys(schema.names) | dict(zip(schema.key, key, strict=True))
