"""A full snapshot: some tables as of one point of the source, read in parallel.

All tables are read under one consistent state of the database and each becomes one lake version stamped with that
state's position P. Changes from P on are in the log already, because capture has been running since before P.

A table that cannot be copied is a failure of that table; the others are copied. What survives a crash: tables whose
version is there. The others are read again under a new snapshot at a later P'. Each table continues from its own P.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from tailrace.errors import DefiniteError, TailraceError, TransientError
from tailrace.failpoint import failpoint
from tailrace.lake.door import LakeTable, Part, TableVersion, WritePart
from tailrace.lake.stamp import Stamp
from tailrace.model.table import TableId, TableSchema
from tailrace.model.table_state import TableRecord
from tailrace.model.text_key import text_keyed
from tailrace.source.door import Chunk, Problem, SnapshotPoint, Source, SourceTable
from tailrace.spark.chunks import ChunkPlan, copy_chunks, tasks_at_once
from tailrace.spark.session import LazySession
from tailrace.spark.sharing import at_once_max, in_threads, is_for_executors
from tailrace.spark.task_errors import is_spark_gone, unexpected

ATTEMPTS = 5
PAUSE_SECONDS = 0.5

logger = logging.getLogger(__name__)


class CancelledError(TransientError):
    """The snapshot was told to stop."""


@dataclass(frozen=True)
class TableProgress:
    """How much of one table has been read."""

    table: TableId
    chunks_done: int
    chunks: int
    rows_estimated: int
    held_seconds: float = 0.0
    """By windows: how long the last one held a state of the source."""
    held_seconds_max: float = 0.0
    """By windows: how long the longest one did."""
    rows_read: int | None = None
    """So many, where they are counted."""
    seconds: float = 0.0
    """What it has taken so far, without the time in which it was paused or no connector ran."""

    @property
    def rows_done(self) -> int:
        """About so many."""
        if self.rows_read is not None:
            return self.rows_read
        return self.rows_estimated * self.chunks_done // max(1, self.chunks)

    @property
    def percent(self) -> float:
        return min(100.0, 100.0 * self.rows_done / self.rows_estimated) if self.rows_estimated else 0.0

    @property
    def rows_per_second(self) -> float:
        return self.rows_done / self.seconds if self.seconds else 0.0

    @property
    def seconds_left(self) -> float | None:
        """None where that cannot be told yet."""
        rate = self.rows_per_second
        return max(0, self.rows_estimated - self.rows_done) / rate if rate else None


@dataclass(frozen=True)
class SnapshotPlan:
    """What to copy and how."""

    source: Source
    open_table: Callable[[TableId], LakeTable]
    tables: Mapping[TableId, TableRecord]
    """What is known of each: the number of this copy of it, and what of its key is to be text."""
    chunk_bytes_max: int
    in_parallel: int
    readers_max: int
    """How many chunks may be read at once, of all tables together."""

    @property
    def tables_at_once(self) -> int:
        return min(self.in_parallel, self.readers_max)


class FullSnapshot:
    """One run over some tables. `run` in one thread; everything else from any."""

    def __init__(self, spark: LazySession, plan: SnapshotPlan) -> None:
        self._spark = spark
        self._plan = plan
        self._described: dict[TableId, SourceTable] = {}
        self._chunks: dict[TableId, list[Chunk]] = {}
        self._read_here: dict[TableId, int] = {}
        """How many of a table's chunks this process has read itself."""
        self._tasks: dict[TableId, int] = {}
        """How many tasks read the others."""
        self._reads_here = not is_for_executors(spark)
        self._readers = min(plan.readers_max, at_once_max(spark) or 1)
        self._turns, self._counts = threading.BoundedSemaphore(self._readers), threading.Lock()
        """Of threads that read chunks here, of all tables."""
        self._cancelled = threading.Event()
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
                with self._plan.source.snapshot(self._wait) as point:
                    self.waits_for = None
                    self._describe()
                    self._copy_all(point)
                return
            except TransientError as error:
                self.waits_for = None
                # A table was rewritten meanwhile, or the connection broke: what has landed stays.
                if attempt == ATTEMPTS or self._cancelled.wait(PAUSE_SECONDS * 2**attempt):
                    raise
                logger.warning("snapshot tried again", extra={"reason": error.message, "attempt": attempt})

    def cancel(self) -> None:
        """Stop soon; `run` then raises `CancelledError`, or what stopping broke."""
        self._cancelled.set()
        with suppress(Py4JError, ConnectionError):  # A Spark that is gone has no jobs left.
            for table in self._plan.tables:
                if (spark := self._spark.started) is not None:
                    spark.sparkContext.cancelJobGroup(_group(table))

    def _wait(self, problem: Problem | None) -> None:
        self.waits_for = problem or self.waits_for
        if self._cancelled.is_set():
            raise CancelledError("stopped")

    @property
    def pending(self) -> list[TableId]:
        return [table for table in self._plan.tables if table not in self.landed and table not in self.failed]

    def progress(self) -> list[TableProgress]:
        """How far each table is."""
        seconds = time.monotonic() - self._begun
        return [
            TableProgress(
                table, self._chunks_done(table), len(self._chunks[table]), found.rows_estimated, seconds=seconds
            )
            for table, found in list(self._described.items())
            if table in self._read_here
        ]

    def _describe(self) -> None:
        """Look at the tables after the snapshot was taken: a partition made before it must not be missed."""
        found = self._plan.source.describe(self.pending)
        for table in self.pending:
            problem = found[table].problem if table in found else None
            if table not in found:
                hint = f"leave it out with --exclude {table.argument}"
                self.failed[table] = DefiniteError(f"table {table} is gone from the source", hint, str(table))
            elif problem is not None:
                self.failed[table] = DefiniteError(problem.message, problem.hint, str(table))
            else:
                self._described[table] = found[table]
                self._chunks[table] = self._plan.source.chunks(found[table], self._plan.chunk_bytes_max)
                self._read_here[table] = 0
                self._tasks.pop(table, None)
        if not self._reads_here and any(len(chunks) > 1 for chunks in self._chunks.values()):
            self._spark.start_soon()

    def _tasks_for(self, spark: SparkSession, chunks: int) -> int:
        """One task a chunk, unless Spark would then run more of them at once than may read."""
        if (tasks_at_once(spark) or math.inf) <= self._plan.readers_max:
            return chunks
        return min(chunks, self._plan.readers_max // self._plan.tables_at_once)

    def _copy_all(self, point: SnapshotPoint) -> None:
        left: TransientError | None = None
        with ThreadPoolExecutor(self._plan.tables_at_once, thread_name_prefix="copy") as pool:
            copies = {pool.submit(self._copy, table, point): table for table in self.pending}
            for copy in as_completed(copies):
                table = copies[copy]
                try:
                    self.landed[table] = copy.result()
                    failpoint("snapshot.table.copied")
                except TransientError as error:
                    left = error
                except DefiniteError as error:
                    self.failed[table] = error
        if left is not None:
            raise left

    def _copy(self, table: TableId, point: SnapshotPoint) -> TableVersion:
        if self._cancelled.is_set():
            raise CancelledError("stopped")
        schema = self._schema(table)
        stamp = Stamp(point.position, schema.relation, self._plan.tables[table].copy)
        try:
            draft = self._plan.open_table(table).copy(schema, stamp)
            return TableVersion(draft.commit(self._parts(table, point, draft.write)), stamp)
        except TailraceError:
            raise
        except Exception as error:
            if self._cancelled.is_set():
                raise CancelledError("stopped") from None
            if is_spark_gone(error):
                raise
            logger.exception("copy failed", extra={"table": str(table)})
            raise unexpected(error, str(table)) from None

    def _schema(self, table: TableId) -> TableSchema:
        return text_keyed(self._described[table].schema, self._plan.tables[table].text_key)

    def _parts(self, table: TableId, point: SnapshotPoint, write: WritePart) -> list[Part]:
        """Read here what would take longer to hand out, and what can be read before Spark has started."""
        source, schema, chunks = self._plan.source, self._schema(table), self._chunks[table]

        def read(chunk: Chunk) -> Part:
            with self._turns:
                self._wait(None)
                part = write(source.read_chunk(point, chunk, schema))
            with self._counts:
                self._read_here[table] += 1
            return part

        if self._reads_here:
            return in_threads(chunks, self._readers, read)
        parts: list[Part] = []
        while len(parts) < len(chunks) and (len(chunks) == 1 or self._spark.is_starting):
            parts.append(read(chunks[len(parts)]))
        if len(parts) == len(chunks):
            return parts
        spark, rest = self._spark.get(), chunks[len(parts) :]
        self._tasks[table] = self._tasks_for(spark, len(rest))
        spark.sparkContext.setJobGroup(_group(table), f"snapshot of {table}")
        return parts + copy_chunks(spark, ChunkPlan(source, point, rest, self._tasks[table]), schema, write)

    def _chunks_done(self, table: TableId) -> int:
        """From Spark's own count of finished tasks: the stage that has as many as read the chunks."""
        chunks, here, tasks = len(self._chunks[table]), self._read_here[table], self._tasks.get(table)
        if table in self.landed:
            return chunks
        if tasks is None or self._spark.started is None:
            return here
        tracker = self._spark.started.sparkContext.statusTracker()
        done = 0
        for job in tracker.getJobIdsForGroup(_group(table)):
            info = tracker.getJobInfo(job)
            stages = [tracker.getStageInfo(stage) for stage in (info.stageIds if info else ())]
            done = max([done, *(stage.numCompletedTasks for stage in stages if stage and stage.numTasks == tasks)])
        return here + min(done, tasks) * (chunks - here) // tasks


def _group(table: TableId) -> str:
    return f"tailrace snapshot {table}"
