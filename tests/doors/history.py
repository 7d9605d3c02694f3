"""The file of a scripted source, and the tables that its lines add up to.

The "server" is one file of JSON lines. A process that appends a line holds a lock and gives it the next ordinal, ten
after the last, so the file is one history in commit order, whatever processes write it:

    {"ordinal": 0, "server": "5f0c…"}                       the first line
    {"ordinal": 10, "steps": [{"define": …}, {"insert": …, "row": …}, …]}     a transaction
    {"ordinal": 20, "claim": "lake_1"}                      changes are kept for a claim from here on
    {"ordinal": 30, "claim": "lake_1", "send": ["shop.orders"]}    … and those of these tables are sent
    {"ordinal": 40, "forbid": "shop.orders"}                our user may not read the table

Every line has a time and a detail too. A last line without its newline is still being written and is not there yet.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import IO, Any

from tailrace.errors import TransientError
from tailrace.model.position import START, SourcePosition
from tailrace.model.table import TableSchema

Line = dict[str, Any]
Row = dict[str, Any]

ORDINAL_STEP = 10


def append(path: Path, make: Callable[[History], Line | None]) -> SourcePosition:
    """Add the line that `make` wants after the history so far, if it wants one. Returns where the script ends then."""
    with _reached(path, "r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0, os.SEEK_END)
        history = History.of(read_lines(path)[0])
        line = make(history)
        if line is not None:
            line = _place(history) | line
            file.write(json.dumps(line).encode() + b"\n")
            history.apply(line)
    return history.position


def _place(history: History) -> Line:
    ordinal = history.position.ordinal + ORDINAL_STEP if history.server else 0
    return {"ordinal": ordinal, "time_us": time.time_ns() // 1000, "detail": f"gtid:{history.server}:1-{ordinal}"}


def read_lines(path: Path, offset: int = 0) -> tuple[list[Line], int]:
    """The whole lines from a byte on, and where they end. A transient error when the file cannot be reached."""
    with _reached(path, "rb") as file:
        file.seek(offset)
        whole, newline, _ = file.read().rpartition(b"\n")
    return [json.loads(line) for line in whole.splitlines()], offset + len(whole) + len(newline)


def _reached(path: Path, mode: str) -> IO[bytes]:
    try:
        return path.open(mode)
    except OSError as error:
        raise TransientError(f"cannot reach the script {path}: {error.strerror}") from error


def position_of(line: Line) -> SourcePosition:
    return SourcePosition(line["ordinal"], line["time_us"], line["detail"].encode())


@dataclass
class History:
    """The server's state after some lines. Values of rows are as JSON has them."""

    server: str = ""
    position: SourcePosition = START
    tables: dict[str, TableSchema] = field(default_factory=dict)
    rows: dict[str, dict[Any, Row]] = field(default_factory=dict)
    forbidden: set[str] = field(default_factory=set)
    claims: dict[str, int] = field(default_factory=dict)
    """Each claim and the ordinal from which on changes are kept for it."""
    sent: dict[str, set[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, lines: Iterable[Line]) -> History:
        history = cls()
        for line in lines:
            history.apply(line)
        return history

    def apply(self, line: Line) -> None:
        self.position = position_of(line)
        for step in line.get("steps", ()):
            self.apply_step(step)
        match line:
            case {"server": server}:
                self.server = server
            case {"claim": claim, "send": tables}:
                self.sent[claim] |= set(tables)
            case {"claim": claim}:
                self.claims[claim], self.sent[claim] = line["ordinal"], set()
            case {"unclaim": claim}:
                del self.claims[claim], self.sent[claim]
            case {"unsend": table}:
                self._stop_sending(table)
            case {"forbid": table}:
                self.forbidden.add(table)
            case {"allow": table}:
                self.forbidden.discard(table)

    def apply_step(self, step: Line) -> None:
        match step:
            case {"define": definition}:
                self._define(TableSchema.from_json(json.dumps(definition).encode()))
            case {"drop": table}:
                del self.tables[table], self.rows[table]
                self._stop_sending(table)
            case {"insert": table, "row": row}:
                self.rows[table][self._key(table, row)] = row
            case {"update": table, "row": row}:
                old = self.rows[table].pop(self._key(table, step["before"] or row))
                self.rows[table][self._key(table, row)] = row | {name: old[name] for name in step["unchanged"]}
            case {"delete": table, "before": before}:
                del self.rows[table][self._key(table, before)]
            case {"truncate": table}:
                self.rows[table].clear()

    def _define(self, schema: TableSchema) -> None:
        """A new table, or a new shape: a column keeps its values by its number."""
        name = str(schema.table)
        old = self.tables.get(name)
        moved = {column.number: column.name for column in old.columns} if old else {}
        rows = [
            {column.name: row.get(moved.get(column.number, ""), None) for column in schema.columns}
            for row in self.rows.get(name, {}).values()
        ]
        self.tables[name] = schema
        self.rows[name] = {}
        for row in rows:
            self.rows[name][self._key(name, row)] = row

    def _key(self, table: str, row: Row) -> Any:
        key = self.tables[table].key
        return tuple(row[name] for name in key) if key else len(self.rows[table])

    def _stop_sending(self, table: str) -> None:
        for tables in self.sent.values():
            tables.discard(table)


def to_json(value: Any) -> Any:
    """A value as the script writes it; what JSON knows is written as it is, also where no lake type can hold it."""
    match value:
        case bytes():
            return value.hex()
        case date() | datetime():
            return value.isoformat()
        case Decimal():
            return str(value)
        case _:
            return value


def from_json(value: Any, lake_type: str) -> Any:
    """The Python value of a lake type. ValueError or TypeError for what is none, such as `infinity` for a timestamp."""
    if value is None:
        return None
    if lake_type.startswith("decimal"):
        return Decimal(value)
    match lake_type:
        case "binary":
            return bytes.fromhex(value)
        case "date":
            return date.fromisoformat(value)
        case "timestamp" | "timestamp_ntz":
            return datetime.fromisoformat(value)
        case _:
            return value
