"""Some work for Spark's executors: one result for each item, and no rows through Spark."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

from pyspark.sql import DataFrame, SparkSession

from tailrace.spark.task_errors import errors_received, errors_sent

Item = TypeVar("Item")
Result = TypeVar("Result")


def on_executors(
    spark: SparkSession, items: Sequence[Item], tasks: int, work: Callable[[Item], Result]
) -> list[Result]:
    """`work` for each item, in so many tasks; a task takes its items one after another. Items and results can be
    pickled. An error of ours is raised here as it was there."""

    def run(share: list[Item]) -> list[Result]:
        with errors_sent():
            return [work(item) for item in share]

    if not items:
        return []
    shares = [share for share in _shares(items, tasks) if share]
    with errors_received():
        # Not a DataFrame: the first query of a session takes seconds to plan and compile.
        found = spark.sparkContext.parallelize(shares, len(shares)).map(run).collect()
    return [result for results in found for result in results]


def _shares(items: Sequence[Item], tasks: int) -> list[list[Item]]:
    """As even as can be, neighbours together."""
    bounds = [number * len(items) // tasks for number in range(tasks + 1)]
    return [list(items[begin:end]) for begin, end in pairwise(bounds)]


def dealt_out(spark: SparkSession, items: Sequence[object], tasks: int) -> DataFrame:
    """The items in a column `item`, pickled, as even as can be in so many tasks: neighbours in one."""
    listed = [(number * tasks // len(items), pickle.dumps(item)) for number, item in enumerate(items)]
    return spark.createDataFrame(listed, "task int, item binary").repartitionById(tasks, "task")
