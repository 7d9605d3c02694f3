"""Large tables: both sides read and compared by Spark's executors, several tables at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import partial
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tailrace.lake.frames import quote
from tailrace.model.exact import EXACT, LAKE_TYPE, lake_column
from tailrace.model.table import TableId, TableSchema
from tailrace.read.cut import cut_as_it_lies
from tailrace.settings import VerifySettings
from tailrace.source.door import SnapshotPoint, Source
from tailrace.spark.chunks import ChunkPlan, read_chunks
from tailrace.spark.task_errors import errors_received
from tailrace.verify import events
from tailrace.verify._judged import Judged, reported
from tailrace.verify.comparison import DifferingKeys, Sides, checksums, differing_keys
from tailrace.verify.report import Compared, TableReport

PROGRESS_SECONDS = 0.25


class Executors:
    """A lake and its source, at one point, in one Spark. One thread."""

    def __init__(self, settings: VerifySettings, source: Source, spark: SparkSession, point: SnapshotPoint) -> None:
        self._settings, self._source, self._spark, self._point = settings, source, spark, point
        self._cut = cut_as_it_lies(spark, settings.lake, point.position)
        self._opening = threading.Lock()

    def compare(self, tables: Sequence[Judged], tell: events.Tell) -> Iterator[TableReport]:
        """In the order in which they are done."""
        with ThreadPoolExecutor(self._settings.tables_in_parallel, thread_name_prefix="verify") as pool:
            futures = {pool.submit(reported, each.table, partial(self._compare, each)): each.table for each in tables}
            try:
                yield from self._done(futures, tell)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                with suppress(Py4JError, ConnectionError):  # A Spark that is gone has no jobs left.
                    for table in futures.values():
                        self._spark.sparkContext.cancelJobGroup(_group(table))
                raise

    def _done(self, futures: Mapping[Future[TableReport], TableId], tell: events.Tell) -> Iterator[TableReport]:
        pending = set(futures)
        while pending:
            done, pending = wait(pending, PROGRESS_SECONDS, FIRST_COMPLETED)
            yield from (future.result() for future in done)
            for future in pending:
                if future.running():
                    tell(self._progress(futures[future]))

    def _progress(self, table: TableId) -> events.TableProgressed:
        tracker = self._spark.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(_group(table))]
        found = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        stages = [stage for stage in found if stage]
        done = sum(stage.numCompletedTasks for stage in stages)
        return events.TableProgressed(table, done, sum(stage.numTasks for stage in stages))

    def _compare(self, judged: Judged) -> Compared:
        name = str(judged.table)
        self._spark.sparkContext.setJobGroup(_group(judged.table), f"verification of {name}")
        with self._opening:
            frame, columns = self._cut.tables[name], self._cut.tables.columns(name)
        schema = judged.schema(columns)
        chunks = self._source.chunks(judged.found, self._settings.chunk_bytes_max)
        readers = max(1, self._settings.readers_max // self._settings.tables_in_parallel)
        plan = ChunkPlan(self._source, self._point, chunks, min(len(chunks), readers))
        with errors_received():
            sides = _sides(read_chunks(self._spark, plan, schema), frame, schema)
            sums = checksums(sides)
            keys = differing_keys(sides, sums.differing, self._settings.keys_max) if sums.differing else DifferingKeys()
        return Compared(sums.source_rows, sums.lake_rows, keys.counts, keys.shown)


def _sides(rows: DataFrame, frame: DataFrame, schema: TableSchema) -> Sides:
    """Both sides with what their columns cannot hold in a column of its own, as entries: Spark compares no maps."""
    exact = lake_column(schema.names).name
    kept = sf.col(quote(exact)) if exact in frame.columns else sf.lit(None).cast(LAKE_TYPE)
    names: list[Any] = [sf.col(quote(name)) for name in schema.names]
    lake = frame.select(*names, sf.array_sort(sf.map_entries(kept)).alias(exact))
    source = rows.select(*names, sf.array_sort(sf.map_entries(sf.col(quote(EXACT)))).alias(exact))
    return Sides(source, lake, (*schema.names, exact), schema.key or schema.names)


def _group(table: TableId) -> str:
    return f"tailrace verify {table}"
