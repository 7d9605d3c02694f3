"""The initial snapshot: every pending table as of one LSN, read in parallel.

A temporary slot exports a Postgres snapshot that stands at an exact LSN P. All pending tables are
read under it and each becomes one lake commit stamped with P. Changes from P on are in the log
already, because capture has been draining the connector's own slot since before P.

What survives a crash: tables whose commit is done. The others are read again under a new
snapshot at a later P'; each table then goes on from its own P.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from tailrace.errors import DefiniteError, TransientError
from tailrace.failpoint import failpoint
from tailrace.lake.delta import DeltaTable
from tailrace.lake.stamp import Stamp
from tailrace.model.lsn import Lsn
from tailrace.model.table import TableId
from tailrace.source.postgres.catalog import TableInfo, list_tables, schema_of
from tailrace.source.postgres.chunks import Chunk
from tailrace.source.postgres.chunks import plan as plan_chunks
from tailrace.source.postgres.connection import connect
from tailrace.source.postgres.slot import ExportedSnapshot, exported_snapshot
from tailrace.spark.chunks import read_chunks
from tailrace.spark.explain import explained

ATTEMPTS = 5


@dataclass(frozen=True)
class TableProgress:
    """How much of one table has been read."""

    table: TableId
    chunks_done: int
    chunks: int
    rows_estimated: int


@dataclass(frozen=True)
class SnapshotPlan:
    """What to copy and how."""

    dsn: str
    tables: Sequence[TableId]
    path_of: Callable[[TableId], Path]
    chunk_bytes_max: int
    in_parallel: int


class InitialSnapshot:
    """One run over the pending tables."""

    def __init__(self, spark: SparkSession, plan: SnapshotPlan) -> None:
        self._spark = spark
        self._plan = plan
        self._infos: dict[TableId, TableInfo] = {}
        self._chunks: dict[TableId, list[Chunk]] = {}
        self._done: set[TableId] = set()

    def run(self, between: Callable[[], None]) -> Lsn:
        """Copy all tables; returns the newest P. `between` is called between two tables and may raise."""
        for attempt in range(ATTEMPTS):
            try:
                with exported_snapshot(self._plan.dsn, f"tailrace_snapshot_{secrets.token_hex(4)}") as exported:
                    self._describe()
                    self._copy_all(exported, between)
                    return exported.lsn
            except TransientError:
                # A table was rewritten under us, or the connection broke: what is done stays done.
                if attempt + 1 == ATTEMPTS:
                    raise
                between()
        raise AssertionError

    def _describe(self) -> None:
        """Look at the tables after the snapshot was taken: a partition made before it must not be missed."""
        pending = [table for table in self._plan.tables if table not in self._done]
        with connect(self._plan.dsn) as conn:
            infos = {info.table: info for info in list_tables(conn, []) if info.table in pending}
        gone = [table for table in pending if table not in infos]
        if gone:
            raise DefiniteError(f"table {gone[0]} is gone", f"leave it out with --exclude {gone[0]}")
        self._infos |= infos
        self._chunks |= {table: plan_chunks(info, self._plan.chunk_bytes_max) for table, info in infos.items()}

    def _copy_all(self, exported: ExportedSnapshot, between: Callable[[], None]) -> None:
        pending = [table for table in self._plan.tables if table not in self._done]
        with ThreadPoolExecutor(self._plan.in_parallel) as pool:
            copies = {pool.submit(self._copy, self._infos[table], exported): table for table in pending}
            try:
                for copy in as_completed(copies):
                    copy.result()
                    self._done.add(copies[copy])
                    failpoint("snapshot.table.copied")
                    between()
            except BaseException:
                pool.shutdown(cancel_futures=True, wait=False)
                self._spark.sparkContext.cancelAllJobs()
                raise

    def progress(self) -> list[TableProgress]:
        """How far each table is, for a person to watch. Any thread."""
        return [
            TableProgress(table, self._chunks_done(table), len(self._chunks[table]), info.rows_estimated)
            for table, info in list(self._infos.items())
            if table in self._chunks
        ]

    def _copy(self, info: TableInfo, exported: ExportedSnapshot) -> None:
        schema = schema_of(info)
        table = DeltaTable(self._spark, self._plan.path_of(info.table))
        table.create(schema)
        self._spark.sparkContext.setJobGroup(_group(info.table), f"snapshot of {info.table}")
        chunks = self._chunks[info.table]
        rows = read_chunks(self._spark, self._plan.dsn, exported.name, chunks, schema)
        with explained():
            table.copy(rows, schema, Stamp(exported.lsn, info.relation))

    def _chunks_done(self, table: TableId) -> int:
        """From Spark's own count of finished tasks: the stage that has one task a chunk."""
        chunks = len(self._chunks[table])
        if table in self._done:
            return chunks
        tracker = self._spark.sparkContext.statusTracker()
        done = 0
        for job in tracker.getJobIdsForGroup(_group(table)):
            info = tracker.getJobInfo(job)
            stages = [tracker.getStageInfo(stage) for stage in (info.stageIds if info else ())]
            done = max([done, *(stage.numCompletedTasks for stage in stages if stage and stage.numTasks == chunks)])
        return min(done, chunks)


def _group(table: TableId) -> str:
    return f"tailrace snapshot {table}"
