"""Windows: the next rows of some tables, read in the order of their keys under one brief state of the source.

    state ─ describe ─ plan chunks by key ─ read them in parallel, each into a file ─ the state ends

Seconds, not hours: how many rows a group takes follows from how long the last one took. Nothing of it counts before its
rows are reconciled with the log and published. What a crash leaves are files, which the next copy deletes.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path

from tailrace.changes.window_rows import Staged, write_staged
from tailrace.engine.door import Engine, Job
from tailrace.errors import DefiniteError, ResyncError, TailraceError, TransientError, unexpected
from tailrace.model.key_rows import KeyRows
from tailrace.model.position import START, SourcePosition
from tailrace.model.table import TableId, TableSchema
from tailrace.model.text_key import TextKey, text_keyed
from tailrace.source.door.rows import Cursor, Rows, WindowPoint
from tailrace.source.door.source import Source
from tailrace.source.door.values import Chunk, Claim, Definition, SourceTable, Waiting, wait_in_silence

GROUP_SECONDS = 2.0
"""How long a state of the source is held, about."""
ROWS_FIRST = 50_000
"""In the first chunks of a table, if they are not too wide for that."""
ROWS_FIRST_UNKNOWN = 2_000
"""The same where no one knows how wide they are."""
ROWS_MAX = 1_000_000
CHUNK_BYTES_MIN = 1 << 20
"""Less than this costs more to plan than to read, however slow the machine is at present."""
GROWTH_MAX = 4.0
"""A group is at most so many times as large as the last one: the machine may be slower by now."""
CHUNKS_A_TASK = 2
TABLES_MAX = 64


@dataclass(frozen=True)
class Wanted:
    """What is to be read next of one table."""

    table: TableId
    between: tuple[Cursor | None, Cursor | None]
    """Rows after the first key and up to the second; none if they are equal."""
    definition: Definition | None
    """The one that its copy has followed to."""
    again: KeyRows | None = None
    """Keys of rows to be read again, instead."""
    order: tuple[str, ...] = ()
    """Columns to go by instead of the key."""
    condition: str | None = None
    """Which of the rows."""
    text_key: TextKey | None = None
    """What of its key its copy has as text."""


@dataclass(frozen=True)
class TableWindow:
    """What was read of one table."""

    schema: TableSchema
    is_moved: bool
    """Its definition is not the wanted one any more."""
    staged: tuple[Staged, ...]
    done: Cursor | None
    """The rows up to this key were read."""
    again: KeyRows | None
    """Or nothing but the rows with these keys was read."""
    held_seconds: float = 0.0
    """How long the state was held, from before it was taken until its transaction had ended."""
    chunks: int = 0
    begun: float = 0.0
    """When the reading began, on the clock that only runs forwards."""

    @property
    def rows(self) -> int:
        return sum(each.rows for each in self.staged)


@dataclass
class Group:
    """What was read under one state of the source."""

    point: WindowPoint
    folder: Path
    tables: dict[TableId, TableWindow] = field(default_factory=dict)
    failed: dict[TableId, TailraceError] = field(default_factory=dict)
    position: SourcePosition = START
    """At this, the log has all that the state shows, and all that the tables' definitions say."""
    seconds: float = 0.0
    """How long the state was held."""

    def forget(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


@dataclass(frozen=True)
class _Task:
    """One chunk to be read; may travel to an executor."""

    table: TableId
    chunk: Chunk
    schema: TableSchema
    path: Path


@dataclass(frozen=True)
class WindowSizes:
    """How much is read at once."""

    readers_max: int
    chunk_bytes: int
    """See `TaskSizes.window_bytes`."""
    chunk_rows: int | None = None
    """Fixes how many rows a chunk has."""


class WindowReader:
    """Reads groups, one at a time."""

    def __init__(self, source: Source, claim: Claim, engine: Engine, folder: Path, sizes: WindowSizes) -> None:
        self._source = source
        self._claim = claim
        self._engine = engine
        self._folder = folder
        self._sizes = sizes
        self._rows: dict[TableId, int] = {}
        self._number = 0
        shutil.rmtree(folder, ignore_errors=True)

    def read(self, wanted: Sequence[Wanted], waiting: Waiting = wait_in_silence) -> Group:
        """The next chunks of the first of the tables, as many as are worth a group. A table that cannot be read is in
        `failed`; a transient error breaks off the group."""
        self._engine.await_ready()
        self._number += 1
        folder = self._folder / str(self._number)
        begun = time.monotonic()
        try:
            for path in (self._folder, folder):
                path.mkdir(0o700, exist_ok=True)
            with self._source.window(waiting) as point:
                group = Group(point, folder)
                self._read(group, wanted[:TABLES_MAX])
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError):
                raise TransientError(f"rows cannot be kept for a moment in {self._folder}: {error}") from error
            raise
        group.seconds = time.monotonic() - begun
        for table, window in group.tables.items():
            group.tables[table] = replace(window, held_seconds=group.seconds, begun=begun)
        # After the last row was read: what empties a table shows at once, whatever state it is read under. After the
        # window has closed: watermarks of the source are before it.
        group.position = max(point.position, self._source.now())
        self._adapt(group)
        return group

    def _read(self, group: Group, wanted: Sequence[Wanted]) -> None:
        found = self._source.describe([each.table for each in wanted])
        defined = self._source.define(self._claim, {each.table: each.definition for each in wanted})
        room = float(self._tasks() * CHUNKS_A_TASK)
        tasks: list[_Task] = []
        for each in wanted:
            if room <= 0:
                break
            try:
                table = ready(each.table, found, defined)
                schema = text_keyed(defined[each.table], each.text_key)
                window, chunks = self._plan(group.point, each, table, schema, room)
            except DefiniteError as error:
                group.failed[each.table] = error
                continue
            group.tables[each.table] = replace(window, chunks=len(chunks))
            paths = (group.folder / f"{len(tasks) + number}" for number in range(len(chunks)))
            tasks += [_Task(each.table, chunk, schema, path) for chunk, path in zip(chunks, paths, strict=False)]
            size, taken = self._rows_of(table), len(chunks) * (self._sizes.chunk_rows or self._rows_of(table))
            room -= taken / size * min(1.0, max(0.05, table.rows_estimated / size))
        self._stage(group, tasks)

    def _plan(
        self, point: WindowPoint, wanted: Wanted, table: SourceTable, schema: TableSchema, room: float
    ) -> tuple[TableWindow, list[Chunk]]:
        """What to read of one table, `room` times as many rows as a chunk is worth; its files are not there yet. Rows
        that are read again have a group of their own: a key must not be in two chunks of one."""
        after, last = wanted.between
        is_moved = wanted.definition != schema.definition
        if wanted.again is not None:
            window = TableWindow(schema, is_moved, (), after, wanted.again)
            return window, [self._source.chunk_of_keys(table, wanted.again)]
        chunks: list[Chunk] = []
        if after != last:
            rows = self._sizes.chunk_rows or self._rows_of(table)
            count = max(1, math.ceil(room * self._rows_of(table) / rows))
            chunks = self._source.key_chunks(point, table, (after, last), rows, count, wanted.order)
        # Fewer chunks than asked for need not be the last: rows that are equal in the order are in one.
        is_through = not chunks or list(chunks[-1].upto) == list(last or ())
        done = last if is_through else chunks[-1].upto
        if wanted.condition is not None:
            chunks = [self._source.filtered(chunk, wanted.condition) for chunk in chunks]
        return TableWindow(schema, is_moved, (), done, None), chunks

    def _stage(self, group: Group, tasks: Sequence[_Task]) -> None:
        """Read the chunks into their files, side by side."""
        names = sorted({str(task.table) for task in tasks})
        what = names[0] if len(names) == 1 else f"{len(names)} tables"
        job = Job(f"read rows of {what}", read_group(self._folder))
        count = min(len(tasks), self._tasks())
        read = partial(_staged, self._source, group.point, self._sizes.chunk_bytes)
        found = self._engine.map(job, tasks, read, count)
        for table, window in group.tables.items():
            staged = tuple(
                each for task, parts in zip(tasks, found, strict=True) if task.table == table for each in parts
            )
            group.tables[table] = replace(window, staged=staged)

    def _adapt(self, group: Group) -> None:
        """Let the next group take about as long as it should."""
        for table, window in group.tables.items():
            width = sum(each.bytes for each in window.staged) / max(1, window.rows)
            rows = self._rows.get(table, ROWS_FIRST)
            least = ROWS_FIRST if self._sizes.chunk_rows is None else 1
            self._rows[table] = rows_next(rows, group.seconds, width, self._sizes.chunk_bytes, least)

    def _rows_of(self, table: SourceTable) -> int:
        """How many rows a task should read of a table at once: in one chunk, unless another size is fixed."""
        return self._rows.setdefault(table.table, self._sizes.chunk_rows or rows_first(table, self._sizes.chunk_bytes))

    def _tasks(self) -> int:
        return min(self._sizes.readers_max, self._engine.cores)


def read_group(folder: Path) -> str:
    """Names the jobs that read rows into files in a folder."""
    return f"tailrace {folder} read"


def ready(table: TableId, found: Mapping[TableId, SourceTable], defined: Mapping[TableId, TableSchema]) -> SourceTable:
    """The table as it is described; a definite error if it cannot be copied by its key."""
    if table not in found or table not in defined:
        hint = f"leave it out with --exclude {table.argument}"
        raise DefiniteError(f"table {table} is gone from the source", hint, str(table))
    problem = found[table].problem
    if problem is not None:
        raise DefiniteError(problem.message, problem.hint, str(table))
    if not defined[table].key:
        raise ResyncError.of(table, "it has no key any more")
    return found[table]


def rows_first(table: SourceTable, chunk_bytes: int) -> int:
    """How many rows the first chunks of a table have: as many as its width allows."""
    if table.row_bytes_estimated is None:
        return ROWS_FIRST_UNKNOWN
    return max(1, min(ROWS_FIRST, chunk_bytes // max(1, table.row_bytes_estimated)))


def rows_next(rows: int, seconds: float, width: float, chunk_bytes: int, rows_min: int = ROWS_FIRST) -> int:
    """How many rows chunks have after a group with `rows` in each took so long. `width` is what a row took in memory;
    0 where there was none. Below `rows_min`, they are not made smaller than what is worth planning."""
    factor = min(GROWTH_MAX, max(0.25, GROUP_SECONDS / max(0.01, seconds)))
    most = min(ROWS_MAX, int(chunk_bytes / max(1.0, width)))
    least = min(rows_min, int(CHUNK_BYTES_MIN / max(1.0, width)))
    return max(1, least, min(most, int(rows * factor)))


def _staged(source: Rows, point: WindowPoint, piece_bytes: int, task: _Task) -> list[Staged]:
    """What goes wrong is the table's: a disk that is full is worth another try, the unforeseen is not."""
    table = str(task.table)
    try:
        batches = iter(source.read_chunk(point, task.chunk, task.schema))
        found: list[Staged] = []
        while (first := next(batches, None)) is not None:
            path = task.path.with_name(f"{task.path.name}-{len(found)}.arrow")
            found.append(write_staged(path, task.schema, chain([first], batches), piece_bytes))
        return found
    except TailraceError:
        raise
    except OSError as error:
        raise TransientError(f"{table}: rows cannot be kept for a moment: {error}", table=table) from error
    except Exception as error:
        raise unexpected(error, table) from error
