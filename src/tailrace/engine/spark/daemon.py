"""Spark's daemon of Python workers, with what tasks need loaded before it forks them.

A worker that is forked here begins its first task at once, and shares the memory of what is loaded with the others.
Spark ends workers that had nothing to do for a minute, so in a quiet lake most jobs begin with new ones. On a cluster
this module is in the package that executors get with their first task.
"""

from __future__ import annotations

import gc
import sys
from contextlib import suppress
from importlib import import_module

from pyspark.daemon import manager

WORKER = "pyspark.worker"
MODULES = (
    "pyarrow.compute",
    "pyarrow.ipc",
    "pyarrow.parquet",
    "pyspark.worker",
    "tailrace.changes.compaction",
    "tailrace.changes.decoding",
    "tailrace.changes.tail",
    "tailrace.engine.spark.jobs",
    "tailrace.log.reader",
)


def preload() -> None:
    """Load what tasks use."""
    from tailrace.lake import formats
    from tailrace.source import kinds

    for name in MODULES:
        import_module(name)
    formats.format_named(formats.DEFAULT)
    kinds.preload()
    # A collection in a worker would write to every object, and so copy the pages that it shares with the others.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    # Spark also has daemons for workers that only plan a query.
    if sys.argv[1:2] == [WORKER]:
        # What a machine of a cluster lacks is told by the first task, which can name it.
        with suppress(ImportError):
            preload()
    manager()
