"""Chunks of a snapshot, read by Spark's executors in parallel."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tailrace.lake.frames import spark_schema
from tailrace.model.table import TableSchema
from tailrace.source.postgres import chunks as source
from tailrace.source.postgres.chunks import Chunk
from tailrace.spark.explain import portable


def read_chunks(
    spark: SparkSession, dsn: str, exported_snapshot: str, chunks: Sequence[Chunk], schema: TableSchema
) -> DataFrame:
    """The chunks' rows, one task a chunk. Lazy: the snapshot must live until the frame is used."""

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for chunk in batch.column("chunk").to_pylist():
                with portable():
                    yield from source.read(dsn, exported_snapshot, pickle.loads(chunk), schema)

    listed = [(number, pickle.dumps(chunk)) for number, chunk in enumerate(chunks)]
    plan = spark.createDataFrame(listed, "number int, chunk binary").repartitionByRange(len(listed), "number")
    return plan.mapInArrow(read, spark_schema(source.chunk_schema(schema)))
