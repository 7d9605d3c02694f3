"""Chunks of a snapshot, read by Spark's executors in parallel."""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tailrace.lake.door import Part, WritePart
from tailrace.lake.frames import spark_schema
from tailrace.model.change import row_schema
from tailrace.model.exact import EXACT, EXACT_TYPE, padded
from tailrace.model.table import TableSchema
from tailrace.source.door import Chunk, SnapshotPoint, Source
from tailrace.spark.task_errors import errors_sent
from tailrace.spark.tasks import dealt_out, on_executors

_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,.*)?\])?$")


@dataclass(frozen=True)
class ChunkPlan:
    """What is to be read of one table, and by how many tasks."""

    source: Source
    point: SnapshotPoint
    chunks: Sequence[Chunk]
    tasks: int


def copy_chunks(spark: SparkSession, plan: ChunkPlan, schema: TableSchema, write: WritePart) -> list[Part]:
    """Read the chunks and write them to the lake, each where it was read: rows do not pass through Spark. A task reads
    its chunks one after another, each on one connection."""
    source, point = plan.source, plan.point

    def copy(chunk: Chunk) -> Part:
        return write(source.read_chunk(point, chunk, schema))

    return on_executors(spark, plan.chunks, plan.tasks, copy)


def read_chunks(spark: SparkSession, plan: ChunkPlan, schema: TableSchema) -> DataFrame:
    """The chunks' rows, for who wants them in Spark, with a column `EXACT`.

    Lazy: the snapshot must live until the DataFrame is used.
    """
    source, point = plan.source, plan.point

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for chunk in batch.column("item").to_pylist():
                with errors_sent():
                    yield from map(padded, source.read_chunk(point, pickle.loads(chunk), schema))

    shape = row_schema(schema).append(pa.field(EXACT, EXACT_TYPE))
    return dealt_out(spark, plan.chunks, plan.tasks).mapInArrow(read, spark_schema(shape))


def tasks_at_once(spark: SparkSession) -> int | None:
    """How many tasks a local Spark runs at most at the same time; None for a cluster, which may grow."""
    return local_cores(str(spark.sparkContext.master))


def local_cores(master: str) -> int | None:
    """How many cores a local Spark has by its master's name; None for a cluster."""
    found = _LOCAL.match(master)
    if found is None:
        return None
    cores = found[1] or "1"
    return (os.cpu_count() or 1) if cores == "*" else int(cores)
