"""A full snapshot: some tables as of one point of the source, read in parallel.

All tables are read under one consistent state of the database and each becomes one lake version stamped with that
state's position P. Changes from P on are in the log already, because capture has been running since before P.

A table that cannot be copied is a failure of that table; the others are copied. What survives a crash: tables whose
version is there. The others are read again under a new snapshot at a later P'. Each table continues from its own P.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial

from tailrace.connector.copy.running_copy import TableStart
from tailrace.engine.dividing import attempted, side_by_side
from tailrace.engine.door import Engine, EngineError, Job
from tailrace.errors import DefiniteError, LeaseLostError, TailraceError, TransientError
from tailrace.failpoint import failpoint
from tailrace.lake.door import Draft, LakeTable, Part, TableVersion, WritePart
from tailrace.lake.stamp import Stamp
from tailrace.model.backoff import Backoff
from tailrace.model.copy_progress import TableProgress
from tailrace.model.rows.text_key import text_keyed
from tailrace.model.table import TableId, TableSchema
from tailrace.source.door.rows import Rows, SnapshotPoint
from tailrace.source.door.source import Database
from tailrace.source.door.values import Chunk, Problem, SourceTable
from tailrace.stop import Stop, Stopped

ATTEMPTS = 5
BACKOFF = Backoff(1.0, 8.0)
SMALL_TABLES_MAX = 64
"""Tables of one chunk that are copied by one job: what a crash or an error of Spark's sets back."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class SnapshotPlan:
    """What to copy and how."""

    source: Database
    open_table: Callable[[TableId], LakeTable]
    tables: Mapping[TableId, TableStart]
    chunk_bytes_max: int
    in_parallel: int
    readers_max: int
    """How many chunks may be read at once, of all tables together."""
    group: str
    """Names its jobs."""

    @property
    def tables_at_once(self) -> int:
        return min(self.in_parallel, self.readers_max)


class FullSnapshot:
    """One run over some tables. `run` in one thread; everything else from any."""

    def __init__(self, engine: Engine, plan: SnapshotPlan, stop: Stop) -> None:
        self._engine = engine
        self._plan = plan
        self._described: dict[TableId, SourceTable] = {}
        self._chunks: dict[TableId, list[Chunk]] = {}
        self._stop = Stop(stop)
        self._begun = time.monotonic()
        self.landed: dict[TableId, TableVersion] = {}
        """Tables that are copied, each with its stamp."""
        self.failed: dict[TableId, TailraceError] = {}
        """Tables that cannot be copied, and why."""
        self.waits_for: Problem | None = None
        """What holds up the snapshot at the source."""

    def run(self) -> None:
        """Copy all tables. A transient error when some are left that may succeed later."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._engine.await_ready()
                with self._plan.source.snapshot(self._wait) as point:
                    self.waits_for = None
                    self._describe()
                    self._copy_all(point)
                return
            except TransientError as error:
                self.waits_for = None
                # A table was rewritten meanwhile, or the connection broke: what has landed stays.
                if attempt == ATTEMPTS or self._stop.wait(BACKOFF.seconds(attempt)):
                    raise
                logger.warning("snapshot tried again", extra={"reason": error.message, "attempt": attempt})

    def cancel(self) -> None:
        """Stop soon; `run` then raises `Stopped`, or what stopping broke."""
        self._stop.set()
        for group in (self._plan.group, *map(self._group, self._plan.tables)):
            self._engine.cancel(group)

    def _wait(self, problem: Problem | None) -> None:
        self.waits_for = problem or self.waits_for
        self._stop.check()

    @property
    def pending(self) -> list[TableId]:
        return [table for table in self._plan.tables if table not in self.landed and table not in self.failed]

    def progress(self) -> list[TableProgress]:
        """How far each table is."""
        seconds = time.monotonic() - self._begun
        return [
            TableProgress(
                table, self._chunks_done(table), len(self._chunks[table]), described.rows_estimated, seconds=seconds
            )
            for table, described in list(self._described.items())
            if table in self._chunks
        ]

    def _describe(self) -> None:
        """Look at the tables after the snapshot was taken: a partition made before it must not be missed."""
        described = self._plan.source.describe(self.pending)
        for table in self.pending:
            try:
                self._described[table] = require_copyable(table, described)
            except DefiniteError as error:
                self.failed[table] = error
                continue
            readers = min(self._engine.cores, self._plan.readers_max)
            self._chunks[table] = self._plan.source.chunks(described[table], self._plan.chunk_bytes_max, readers)

    def _copy_all(self, point: SnapshotPoint) -> None:
        """Each large table by a job of its own, the largest first, and small ones together."""
        left: TransientError | None = None
        pending = sorted(self.pending, key=lambda table: len(self._chunks[table]), reverse=True)
        large = [table for table in pending if len(self._chunks[table]) > 1]
        small = pending[len(large) :]
        groups = [small[number : number + SMALL_TABLES_MAX] for number in range(0, len(small), SMALL_TABLES_MAX)]
        with ThreadPoolExecutor(self._plan.tables_at_once, thread_name_prefix="copy") as pool:
            jobs = [pool.submit(self._copy_large, table, point) for table in large]
            jobs += [pool.submit(self._copy_small, group, point) for group in groups]
            for job in as_completed(jobs):
                for table, outcome in job.result().items():
                    if isinstance(outcome, TableVersion):
                        self.landed[table] = outcome
                        failpoint("snapshot.table.copied")
                    elif isinstance(outcome, TransientError):
                        left = outcome
                    else:
                        self.failed[table] = outcome
        if left is not None:
            raise left

    def _copy_large(self, table: TableId, point: SnapshotPoint) -> dict[TableId, TableVersion | TailraceError]:
        def copy() -> TableVersion:
            draft = self._draft(table, point)
            job = Job(f"copy {table}, {len(self._chunks[table])} chunks", self._group(table))
            read = partial(_read, self._plan.source, point, self._schema(table), draft.write)
            return self._committed(draft, self._engine.map(job, self._chunks[table], read, self._tasks(table)))

        return {table: self._attempted(table, copy)}

    def _copy_small(
        self, tables: Sequence[TableId], point: SnapshotPoint
    ) -> dict[TableId, TableVersion | TailraceError]:
        opened = {table: attempted(str(table), partial(self._draft, table, point), _is_everyones) for table in tables}
        results: dict[TableId, TableVersion | TailraceError] = {t: o.error for t, o in opened.items() if o.error}
        drafts = {table: outcome.result for table, outcome in opened.items() if outcome.result is not None}
        pieces = [self._piece(table, point, draft) for table, draft in drafts.items()]
        job = Job(f"copy {len(pieces)} small tables", self._plan.group)
        try:
            outcomes = side_by_side(self._engine, job, pieces, _is_everyones, self._plan.readers_max)
        except Exception:
            if self._stop.is_set():
                raise Stopped from None
            raise
        for (table, draft), outcome in zip(drafts.items(), outcomes, strict=True):
            if outcome.error is not None:
                results[table] = outcome.error
            else:
                results[table] = self._attempted(table, partial(self._committed, draft, [outcome.result]))
        return results

    def _piece(self, table: TableId, point: SnapshotPoint, draft: Draft) -> SmallTable:
        described = self._described[table]
        chunks, schema = self._chunks[table], self._schema(table)
        source = self._plan.source
        return SmallTable(str(table), source, point, chunks, schema, draft.write, described.rows_estimated)

    def _attempted(self, table: TableId, work: Callable[[], TableVersion]) -> TableVersion | TailraceError:
        self._stop.check()
        outcome = attempted(str(table), work, _is_everyones)
        if outcome.error is not None:
            self._stop.check()
        if outcome.result is not None:
            return outcome.result
        assert outcome.error is not None
        return outcome.error

    def _draft(self, table: TableId, point: SnapshotPoint) -> Draft:
        schema = self._schema(table)
        stamp = Stamp(point.position, schema.relation, self._plan.tables[table].copy)
        return self._plan.open_table(table).copy(schema, stamp)

    @staticmethod
    def _committed(draft: Draft, parts: Sequence[Part]) -> TableVersion:
        return TableVersion(draft.commit(parts), draft.stamp)

    def _schema(self, table: TableId) -> TableSchema:
        return text_keyed(self._described[table].schema, self._plan.tables[table].text_key)

    def _tasks(self, table: TableId) -> int:
        """One task a chunk, unless more of them would run at once than may read."""
        chunks, readers = len(self._chunks[table]), self._plan.readers_max
        return chunks if self._engine.cores <= readers else min(chunks, readers // self._plan.tables_at_once)

    def _chunks_done(self, table: TableId) -> int:
        """From the engine's count of finished tasks."""
        chunks = len(self._chunks[table])
        if table in self.landed:
            return chunks
        done, total = self._engine.tasks_done(self._group(table)) if chunks > 1 else (0, 0)
        return chunks * done // total if total else 0

    def _group(self, table: TableId) -> str:
        return f"{self._plan.group} {table}"


def require_copyable(table: TableId, described: Mapping[TableId, SourceTable]) -> SourceTable:
    """The table as the source describes it; a definite error if it is gone or cannot be copied exactly."""
    if table not in described:
        hint = f"leave it out with --exclude {table.argument}"
        raise DefiniteError(f"table {table} is gone from the source", hint, str(table))
    problem = described[table].problem
    if problem is not None:
        raise DefiniteError(problem.message, problem.hint, str(table))
    return described[table]


def _is_everyones(error: BaseException) -> bool:
    return isinstance(error, EngineError | LeaseLostError)


def _read(source: Rows, point: SnapshotPoint, schema: TableSchema, write: WritePart, chunk: Chunk) -> Part:
    """In a task: rows become a file where they are read."""
    return write(source.read_chunk(point, chunk, schema))


@dataclass(frozen=True)
class SmallTable:
    """A table of one chunk, as work for a task."""

    table: str
    source: Rows
    point: SnapshotPoint
    chunks: Sequence[Chunk]
    schema: TableSchema
    write: WritePart
    bytes: int
    """Its rows, as an estimate: what small tables weigh next to each other."""

    def whole(self) -> Part:
        return self.write(
            batch for chunk in self.chunks for batch in self.source.read_chunk(self.point, chunk, self.schema)
        )
