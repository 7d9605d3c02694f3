"""Windows: the next rows of some tables, read in the order of their keys under one brief state of the source.

    state ─ describe ─ plan chunks by key ─ read them in parallel, each into a file ─ the state ends

Seconds, not hours: how many rows a window takes follows from how long the last one took. Nothing of it counts before
its rows are reconciled with the log and published. What a crash leaves are files, which the next copy deletes.
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
from tailrace.connector.copy.full_snapshot import require_copyable
from tailrace.engine.door import Engine, Job
from tailrace.errors import DefiniteError, ResyncError, TailraceError, TransientError, unexpected
from tailrace.model.position import START, SourcePosition
from tailrace.model.rows.key import KeyRows
from tailrace.model.rows.text_key import TextKey, text_keyed
from tailrace.model.table import TableId, TableSchema
from tailrace.settings import ConnectorSettings, TaskSizes
from tailrace.source.door.rows import Cursor, Rows, WindowPoint
from tailrace.source.door.source import Source
from tailrace.source.door.values import Chunk, Claim, Definition, SourceTable, Waiting, wait_in_silence

ROWS_FIRST = 50_000
"""In the first chunks of a table, if they are not too wide for that."""
ROWS_FIRST_UNKNOWN = 2_000
"""The same where no one knows how wide they are."""
ROWS_MAX = 1_000_000
CHUNK_BYTES_MIN = 1 << 20
"""Less than this costs more to plan than to read, however slow the machine is at present."""
CHUNKS_A_TASK = 2


@dataclass(frozen=True)
class NextRows:
    """What is to be read next of one table."""

    table: TableId
    between: tuple[Cursor | None, Cursor | None]
    """Rows after the first key and up to the second; none if they are equal."""
    definition: Definition | None
    """The one that its copy has followed to."""
    attempt: int = 0
    """Which attempt at the table these rows are for. One that has begun again since does not want them any more."""
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

    asked: NextRows
    schema: TableSchema
    done: Cursor | None
    """The rows up to this key were read, unless only rows were read again."""
    staged: tuple[Staged, ...] = ()
    held_seconds: float = 0.0
    """How long the state was held, from before it was taken until its transaction had ended."""
    chunks: int = 0
    begun: float = 0.0
    """When the reading began, on the clock that only runs forwards."""

    @property
    def rows(self) -> int:
        return sum(chunk.rows for chunk in self.staged)

    @property
    def is_moved(self) -> bool:
        """The table's definition is not the one any more that its copy has followed to."""
        return self.asked.definition != self.schema.definition

    @property
    def again(self) -> KeyRows | None:
        """The keys of rows that were read again, if nothing else was read."""
        return self.asked.again


@dataclass
class Window:
    """What was read under one state of the source."""

    point: WindowPoint
    folder: Path
    tables: dict[TableId, TableWindow] = field(default_factory=dict)
    failed: list[tuple[NextRows, TailraceError]] = field(default_factory=list)
    """Tables that cannot be read, and why."""
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
    tables_max: int = TaskSizes.window_tables_max
    growth_max: float = TaskSizes.window_growth_max
    seconds: float = TaskSizes.window_seconds

    @classmethod
    def of(cls, settings: ConnectorSettings) -> WindowSizes:
        sizes = settings.sizes
        how_much = sizes.window_bytes, settings.window_rows, sizes.window_tables_max
        return cls(settings.readers_max, *how_much, sizes.window_growth_max, sizes.window_seconds)


class WindowReader:
    """Reads windows, one at a time."""

    def __init__(self, source: Source, claim: Claim, engine: Engine, folder: Path, sizes: WindowSizes) -> None:
        self._source = source
        self._claim = claim
        self._engine = engine
        self._folder = folder
        self._sizes = sizes
        self._rows: dict[TableId, int] = {}
        self._number = 0
        shutil.rmtree(folder, ignore_errors=True)

    def read(self, wanted: Sequence[NextRows], waiting: Waiting = wait_in_silence) -> Window:
        """The next chunks of the first of the tables, as many as are worth a window. A table that cannot be read is in
        `failed`; a transient error breaks off the window."""
        self._engine.await_ready()
        self._number += 1
        folder = self._folder / str(self._number)
        begun = time.monotonic()
        try:
            for path in (self._folder, folder):
                path.mkdir(0o700, exist_ok=True)
            with self._source.window(waiting) as point:
                window = Window(point, folder)
                self._read(window, wanted[: self._sizes.tables_max])
        except BaseException as error:
            shutil.rmtree(folder, ignore_errors=True)
            if isinstance(error, OSError):
                raise TransientError(f"rows cannot be stored temporarily in {self._folder}: {error}") from error
            raise
        window.seconds = time.monotonic() - begun
        for table, part in window.tables.items():
            window.tables[table] = replace(part, held_seconds=window.seconds, begun=begun)
        # After the last row was read: what empties a table shows at once, whatever state it is read under. After the
        # window has closed: watermarks of the source are before it.
        window.position = max(point.position, self._source.now())
        self._adapt(window)
        return window

    def _read(self, window: Window, wanted: Sequence[NextRows]) -> None:
        described = self._source.describe([rows.table for rows in wanted])
        defined = self._source.define(self._claim, {rows.table: rows.definition for rows in wanted})
        room = float(self._tasks() * CHUNKS_A_TASK)
        tasks: list[_Task] = []
        for rows in wanted:
            if room <= 0:
                break
            try:
                table = require_keyed(rows.table, described, defined)
                schema = text_keyed(defined[rows.table], rows.text_key)
                done, chunks = self._plan(window.point, rows, table, room)
            except DefiniteError as error:
                window.failed.append((rows, error))
                continue
            window.tables[rows.table] = TableWindow(rows, schema, done, chunks=len(chunks))
            paths = (window.folder / f"{len(tasks) + number}" for number in range(len(chunks)))
            tasks += [_Task(rows.table, chunk, schema, path) for chunk, path in zip(chunks, paths, strict=False)]
            size, taken = self._rows_of(table), len(chunks) * (self._sizes.chunk_rows or self._rows_of(table))
            room -= taken / size * min(1.0, max(0.05, table.rows_estimated / size))
        self._stage(window, tasks)

    def _plan(
        self, point: WindowPoint, wanted: NextRows, table: SourceTable, room: float
    ) -> tuple[Cursor | None, list[Chunk]]:
        """How far to read one table, and in which chunks: `room` times as many rows as a chunk is worth. Rows that are
        read again have a window of their own: a key must not be in two chunks of one."""
        after, last = wanted.between
        if wanted.again is not None:
            return after, [self._source.chunk_of_keys(table, wanted.again)]
        chunks: list[Chunk] = []
        if after != last:
            rows = self._sizes.chunk_rows or self._rows_of(table)
            count = max(1, math.ceil(room * self._rows_of(table) / rows))
            chunks = self._source.key_chunks(point, table, (after, last), rows, count, wanted.order)
        # Getting fewer chunks than asked for does not mean the end: rows that are equal in the order share a chunk.
        is_through = not chunks or list(chunks[-1].upto) == list(last or ())
        done = last if is_through else chunks[-1].upto
        if wanted.condition is not None:
            chunks = [self._source.filtered(chunk, wanted.condition) for chunk in chunks]
        return done, chunks

    def _stage(self, window: Window, tasks: Sequence[_Task]) -> None:
        """Read the chunks into their files, side by side."""
        names = sorted({str(task.table) for task in tasks})
        what = names[0] if len(names) == 1 else f"{len(names)} tables"
        job = Job(f"read rows of {what}", read_group(self._folder))
        count = min(len(tasks), self._tasks())
        read = partial(_staged, self._source, window.point, self._sizes.chunk_bytes)
        results = self._engine.map(job, tasks, read, count)
        for table, part in window.tables.items():
            own = (files for task, files in zip(tasks, results, strict=True) if task.table == table)
            window.tables[table] = replace(part, staged=tuple(chain.from_iterable(own)))

    def _adapt(self, window: Window) -> None:
        """Let the next window take about as long as it should."""
        for table, part in window.tables.items():
            width = sum(chunk.bytes for chunk in part.staged) / max(1, part.rows)
            rows = self._rows.get(table, ROWS_FIRST)
            least = ROWS_FIRST if self._sizes.chunk_rows is None else 1
            self._rows[table] = rows_next(rows, window.seconds, width, self._sizes, least)

    def _rows_of(self, table: SourceTable) -> int:
        """How many rows a task should read of a table at once: in one chunk, unless another size is fixed."""
        return self._rows.setdefault(table.table, self._sizes.chunk_rows or rows_first(table, self._sizes.chunk_bytes))

    def _tasks(self) -> int:
        return min(self._sizes.readers_max, self._engine.cores)


def read_group(folder: Path) -> str:
    """Names the jobs that read rows into files in a folder."""
    return f"tailrace {folder} read"


def require_keyed(
    table: TableId, described: Mapping[TableId, SourceTable], defined: Mapping[TableId, TableSchema]
) -> SourceTable:
    """The table as it is described; a definite error if it cannot be copied by its key."""
    keyed = require_copyable(table, described if table in defined else {})
    if not defined[table].key:
        raise ResyncError.of(table, "it has no key any more")
    return keyed


def rows_first(table: SourceTable, chunk_bytes: int) -> int:
    """How many rows the first chunks of a table have: as many as its width allows."""
    if table.row_bytes_estimated is None:
        return ROWS_FIRST_UNKNOWN
    return max(1, min(ROWS_FIRST, chunk_bytes // max(1, table.row_bytes_estimated)))


def rows_next(rows: int, seconds: float, width: float, sizes: WindowSizes, rows_min: int = ROWS_FIRST) -> int:
    """How many rows chunks have after a window with `rows` in each took so long. `width` is what a row took in memory;
    0 where there was none. Below `rows_min`, they are not made smaller than what is worth planning."""
    factor = min(sizes.growth_max, max(0.25, sizes.seconds / max(0.01, seconds)))
    most = min(ROWS_MAX, int(sizes.chunk_bytes / max(1.0, width)))
    least = min(rows_min, int(CHUNK_BYTES_MIN / max(1.0, width)))
    return max(1, least, min(most, int(rows * factor)))


def _staged(source: Rows, point: WindowPoint, piece_bytes: int, task: _Task) -> list[Staged]:
    """What goes wrong is the table's: a disk that is full is worth another try, the unforeseen is not."""
    table = str(task.table)
    try:
        batches = iter(source.read_chunk(point, task.chunk, task.schema))
        files: list[Staged] = []
        while (first := next(batches, None)) is not None:
            path = task.path.with_name(f"{task.path.name}-{len(files)}.arrow")
            files.append(write_staged(path, task.schema, chain([first], batches), piece_bytes))
        return files
    except TailraceError:
        raise
    except OSError as error:
        raise TransientError(f"{table}: rows cannot be stored temporarily: {error}", table=table) from error
    except Exception as error:
        raise unexpected(error, table) from error
