"""Chunks of a snapshot, read by Spark's executors in parallel."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tailrace.lake.frames import spark_schema
from tailrace.model.change import row_schema
from tailrace.model.table import TableSchema
from tailrace.source.door import Chunk, SnapshotPoint, Source
from tailrace.spark.task_errors import errors_sent


def read_chunks(
    spark: SparkSession, source: Source, point: SnapshotPoint, chunks: Sequence[Chunk], schema: TableSchema
) -> DataFrame:
    """The chunks' rows, one task a chunk. Lazy: the snapshot must live until the DataFrame is used."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for chunk in batch.column("chunk").to_pylist():
                with errors_sent():
                    yield from source.read_chunk(point, pickle.loads(chunk), schema)

    listed = [(number, pickle.dumps(chunk)) for number, chunk in enumerate(chunks)]
    plan = spark.createDataFrame(listed, "number int, chunk binary").repartitionByRange(len(listed), "number")
    return plan.mapInArrow(read, spark_schema(row_schema(schema)))
