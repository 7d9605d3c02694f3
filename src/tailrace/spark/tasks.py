"""Some work for Spark's executors: one result for each item, and no rows through Spark."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tailrace.spark.task_errors import errors_received, errors_sent

Item = TypeVar("Item")
Result = TypeVar("Result")


def on_executors(
    spark: SparkSession, items: Sequence[Item], tasks: int, work: Callable[[Item], Result]
) -> list[Result]:
    """`work` for each item, in so many tasks; a task takes its items one after another. Items and results can be
    pickled. An error of ours is raised here as it was there."""

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for item in batch.column("item").to_pylist():
                with errors_sent():
                    result = work(pickle.loads(item))
                yield pa.RecordBatch.from_pydict({"result": pa.array([pickle.dumps(result)], pa.binary())})

    with errors_received():
        found = dealt_out(spark, items, tasks).mapInArrow(run, "result binary").collect()
        return [pickle.loads(row["result"]) for row in found]


def dealt_out(spark: SparkSession, items: Sequence[object], tasks: int) -> DataFrame:
    """The items in a column `item`, pickled, as even as can be in so many tasks: neighbours in one."""
    listed = [(number * tasks // len(items), pickle.dumps(item)) for number, item in enumerate(items)]
    return spark.createDataFrame(listed, "task int, item binary").repartitionById(tasks, "task")
