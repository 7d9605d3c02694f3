"""A source that plays a script: a second implementation of the door, small enough to read at one sitting.

Its snapshots need no connection, because any state of the script can be computed from its lines. `scripted_codec` says
what its records and positions are. See `script` for how a test writes one.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.doors import feed
from tests.doors.history import History, Line, Row, append, read_lines
from tests.doors.scripted_capture import ScriptedCapture
from tests.doors.scripted_chunks import CursorRange, KeyList, KeyRange, values_of
from tests.doors.scripted_codec import ScriptedCodec
from tests.doors.scripted_offsets import ScriptedOffsets

from tailrace.errors import DefiniteError, TransientError
from tailrace.log.write.writer import LogWriter
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId, TableSchema
from tailrace.settings import Watermarking
from tailrace.source.door.control import CaptureControl
from tailrace.source.door.rows import Cursor, SnapshotPoint, WindowPoint
from tailrace.source.door.source import Source
from tailrace.source.door.stream import Leftovers, Prepared
from tailrace.source.door.tables import Check
from tailrace.source.door.values import (
    Claim,
    Definition,
    Problem,
    Retained,
    SourceTable,
    View,
    Waiting,
    wait_in_silence,
)

BATCH_ROWS = 1000


class ScriptedSource(ScriptedCodec):
    """Implements `Source`. Keeps nothing in memory: every call reads the script. `adopt` is another's claim."""

    def __init__(self, script: str, adopt: str | None = None) -> None:
        self._path, self._adopt = Path(script), adopt

    @property
    def arguments(self) -> Mapping[str, Any]:
        return {"script": str(self._path), "adopt": self._adopt}

    def watermarked(self, how: Watermarking) -> ScriptedSource:
        if how is not Watermarking.READ_ONLY:
            raise DefiniteError("a script has no signal table to write to", "write nothing: --watermarks read_only")
        return self

    def claimed(self, claim: Claim) -> ScriptedSource:
        return self

    def reserved(self) -> frozenset[str]:
        return frozenset()

    def identify(self) -> Mapping[str, str]:
        if not self._path.parent.is_dir():
            raise DefiniteError(f"there is no script {self._path}", "check the path")
        return {"source": self.kind, "database": self._path.stem, "server": self._history().server}

    def claim(self, stored: Claim | None) -> Claim:
        server = self._history().server
        if stored is None:
            return {"server": server, "name": f"lake_{secrets.token_hex(4)}"}
        if stored["server"] != server:
            raise DefiniteError(f"{self._path} is another server than the one claimed", "check the path")
        return stored

    def tables(
        self, include: Sequence[str], exclude: Sequence[str], known: Collection[TableId] = ()
    ) -> list[SourceTable]:
        history = self._history()
        names = sorted(history.tables)
        for pattern in include:
            if not any(_matches(pattern, name) for name in [*names, *map(str, known)]):
                raise DefiniteError(f"no table matches '{pattern}'", f"the script has {', '.join(names)}")
        named = [name for name in names if not include or any(_matches(pattern, name) for pattern in include)]
        chosen = [name for name in named if not any(_matches(pattern, name) for pattern in exclude)]
        if not chosen and not known:
            raise DefiniteError("no table is left to copy", "check the patterns")
        return [_described(history, name) for name in chosen]

    def describe(self, tables: Sequence[TableId]) -> dict[TableId, SourceTable]:
        history = self._history()
        return {table: _described(history, str(table)) for table in tables if str(table) in history.tables}

    def define(self, claim: Claim, known: Mapping[TableId, Definition | None]) -> dict[TableId, TableSchema]:
        tables = self._history().tables
        return {table: tables[str(table)] for table in known if str(table) in tables}

    def mark(self) -> str:
        history = self._history()
        tables = [(schema, schema.definition) for schema in history.tables.values()]
        sent = {name: sorted(tables) for name, tables in history.sent.items()}
        return repr((tables, history.claims, sent, sorted(history.forbidden)))

    def unsent(self, claim: Claim, tables: Sequence[TableId]) -> set[TableId]:
        sent = self._history().sent.get(claim["name"], set())
        return {table for table in tables if str(table) not in sent}

    def prepare(
        self,
        claim: Claim,
        tables: Sequence[TableId],
        resume: SourcePosition | None,
        waiting: Waiting = wait_in_silence,
        *,
        keeps_others: bool = False,
    ) -> Prepared:
        """It never ceases to send a table."""
        name = claim["name"]
        done, refused = [], {}

        def claimed(history: History) -> Line | None:
            kept_from = history.claims.get(name)
            end = max(resume.ordinal, claim.get("skip_to", 0)) if resume is not None else 0
            if resume is not None and (kept_from is None or kept_from > end > 0):
                raise DefiniteError(
                    f"changes after {self.format(resume)} are gone", "start a new lake in an empty folder"
                )
            if kept_from is not None:
                return None
            done.append(f"keeps changes for {name}")
            return {"claim": name}

        def sent(history: History) -> Line | None:
            found = {table: _described(history, str(table)) for table in tables if str(table) in history.tables}
            refused.update({table: info.problem for table, info in found.items() if info.problem})
            missing = [str(table) for table in found if table not in refused and str(table) not in history.sent[name]]
            done.extend(f"sends {table}" for table in missing)
            return {"claim": name, "send": missing} if missing else None

        append(self._path, claimed)
        append(self._path, sent)
        return Prepared(done, refused)

    def require_continuity(self, claim: Claim, end: SourcePosition | None) -> Claim:
        return claim

    def restart(self, claim: Claim, end: SourcePosition) -> Claim:
        raise DefiniteError("a script loses nothing", "start a new lake in an empty folder")

    def drop(self, claim: Claim) -> list[str]:
        name, done = claim["name"], list[str]()

        def dropped(history: History) -> Line | None:
            if name not in history.claims:
                return None
            done.append(f"keeps no changes for {name} any more")
            return {"unclaim": name}

        append(self._path, dropped)
        return done

    def leftovers(self, name: str | None = None) -> Leftovers:
        return Leftovers([{"name": each} for each in self._history().claims if name in (None, each)], [])

    def capture(self, claim: Claim, log: LogWriter, control: CaptureControl) -> None:
        ScriptedCapture(self._path, claim["name"], log, control, claim.get("skip_to", 0)).run()

    def offsets(self) -> ScriptedOffsets:
        return ScriptedOffsets(self._history, self._transactions, self._adopt)

    def now(self) -> SourcePosition:
        return self._history().position

    def lag_bytes(self, ordinal: int) -> int | None:
        return None

    def retained(self, claim: Claim) -> Retained | None:
        return None

    @contextmanager
    def snapshot(self, waiting: Waiting = wait_in_silence) -> Iterator[SnapshotPoint]:
        position = self.now()
        yield SnapshotPoint(position, self.format(position))

    def chunks(self, table: SourceTable, bytes_max: int, readers: int = 1) -> list[KeyRange]:
        rows = self._history().rows.get(str(table.table), {}) if table.schema.key else {}
        weights = {values_of(row, table.schema.key, table.schema): len(json.dumps(row)) for row in rows.values()}
        bounds: list[tuple[Any, ...]] = []
        room = bytes_max
        for key in sorted(weights):
            if weights[key] > room:
                bounds.append(key)
                room = bytes_max
            room -= weights[key]
        ends = zip([None, *bounds], [*bounds, None], strict=True)
        size = sum(weights.values()) // (len(bounds) + 1)
        return [KeyRange(table.table, start, stop, bytes=size) for start, stop in ends]

    @contextmanager
    def window(self, waiting: Waiting = wait_in_silence) -> Iterator[WindowPoint]:
        position = self.now()
        yield WindowPoint(position, self.format(position), {"ordinal": position.ordinal}, is_exact=True)

    def settle(self, tables: Sequence[TableId], waiting: Waiting = wait_in_silence) -> None:
        """Nothing is ever half written in a script."""

    def view(self) -> View:
        return {"ordinal": self.now().ordinal}

    def last_key(self, point: SnapshotPoint, table: SourceTable, order: Sequence[str] = ()) -> Cursor | None:
        cursors = self._cursors(point, table, CursorRange(table.table, _order(table, order)))
        return cursors[-1] if cursors else None

    def key_chunks(
        self,
        point: SnapshotPoint,
        table: SourceTable,
        between: tuple[Cursor | None, Cursor | None],
        rows: int,
        count: int,
        order: Sequence[str] = (),
    ) -> list[CursorRange]:
        after, last = between
        whole = CursorRange(table.table, _order(table, order), after, last)
        cursors = self._cursors(point, table, whole)
        first = enumerate(cursors[: rows * count], 1)
        ends = [cursor for number, cursor in first if number % rows == 0 or number == len(cursors)]
        if cursors and len(cursors) < rows * count and last is not None:
            ends[-1] = last
        starts = [after, *ends]
        pairs = zip(starts, ends, strict=False)
        return [replace(whole, after=start, upto=end) for start, end in pairs if start != end]

    def chunk_of_keys(self, table: SourceTable, keys: pa.Table) -> KeyList:
        columns = [keys.column(name).to_pylist() for name in table.schema.key]
        return KeyList(table.table, frozenset(zip(*columns, strict=True)))

    def read_chunk(self, point: SnapshotPoint, chunk: Any, schema: TableSchema) -> Iterator[pa.RecordBatch]:
        rows = [row for row in self._rows(point, schema) if chunk.holds(row, schema) and _satisfies(row, chunk)]
        for start in range(0, len(rows), BATCH_ROWS):
            yield feed.rows_of(rows[start : start + BATCH_ROWS], schema)

    def _rows(self, point: SnapshotPoint, schema: TableSchema) -> list[Row]:
        name = str(schema.table)
        lines, _ = read_lines(self._path)
        if name in History.of(lines).forbidden:
            raise DefiniteError(f"may not read {name}", f"allow {name}", table=name)
        shown = self.shown_up_to(self.parse(point.token))
        then = History.of(line for line in lines if line["ordinal"] <= shown)
        if name not in then.tables or then.tables[name].to_json() != schema.to_json():
            raise TransientError(f"{name} has another shape than at {point.token}", table=name)
        return list(then.rows[name].values())

    def _cursors(self, point: SnapshotPoint, table: SourceTable, chunk: CursorRange) -> list[Cursor]:
        """Where each of the chunk's rows stands, in order."""
        rows = [row for row in self._rows(point, table.schema) if chunk.holds(row, table.schema)]
        rows.sort(key=lambda row: values_of(row, chunk.order, table.schema))
        return [[json.dumps(row[name]) for name in chunk.order] for row in rows]

    def examine(self, include: Sequence[str], exclude: Sequence[str]) -> list[Check]:
        problems = [table.problem for table in self.tables(include, exclude) if table.problem]
        return [
            Check("script", True, f"{self._path} is readable"),
            *(Check("table", False, problem.message, problem.hint, leaves_out=True) for problem in problems),
        ]

    def _history(self) -> History:
        return History.of(read_lines(self._path)[0])

    def _transactions(self) -> list[int]:
        return [line["ordinal"] for line in read_lines(self._path)[0] if line.get("steps")]


FITS: type[Source] = ScriptedSource
"""It has no base class that says so: mypy finds out whether the door is whole."""


def _matches(pattern: str, name: str) -> bool:
    return fnmatchcase(name if "." in pattern else name.partition(".")[2], pattern)


def _order(table: SourceTable, order: Sequence[str]) -> tuple[str, ...]:
    name = str(table.table)
    for column in order:
        if column not in table.schema.names:
            raise DefiniteError(f"table {name} has no column {column} to go by", table=name)
    if not order and not table.schema.key:
        raise DefiniteError(f"table {name} has no key to go by", table=name)
    return tuple(order) or table.schema.key


def _satisfies(row: Row, chunk: Any) -> bool:
    if chunk.condition is None:
        return True
    name, equals, value = chunk.condition.partition(" = ")
    if not equals or name not in row:
        raise DefiniteError(f"{chunk.condition!r} is no condition", table=str(chunk.table))
    return bool(row[name] == json.loads(value))


def _described(history: History, name: str) -> SourceTable:
    problem = None
    if name in history.forbidden:
        problem = Problem(f"may not read {name}", f"allow {name}")
    elif not history.tables[name].key:
        problem = Problem(f"table {name} has no key", f"give {name} a key")
    return SourceTable(history.tables[name], len(history.rows[name]), problem)
