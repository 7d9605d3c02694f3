"""Work that is shared out: to threads of this process, or to Spark's executors.

Reading and writing rows in columns hardly needs Python's lock, so on a machine with few cores threads do it as well as
executors beside us would. These would have to be started first, each with its own copy of all that we have loaded: two
seconds, in which a state of the source is held for nothing. On a cluster, or with many cores, executors do it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from functools import partial
from typing import TypeVar

from pyspark.sql import SparkSession

from tailrace.spark.chunks import local_cores
from tailrace.spark.session import LazySession
from tailrace.spark.tasks import on_executors

THREADS_MAX = 4
"""More of them would wait for Python's lock."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def is_for_executors(spark: LazySession) -> bool:
    """Whether executors do large work, once there are any."""
    cores = local_cores(spark.master)
    return cores is None or cores > THREADS_MAX


def executors(spark: LazySession) -> SparkSession | None:
    """The session whose executors do large work; None where threads do it, or until it has started."""
    return spark.started if is_for_executors(spark) else None


def at_once_max(spark: LazySession) -> int | None:
    """How many items are worked on at the same time, at most; None for a cluster, which may grow."""
    return _threads() if executors(spark) is None else local_cores(spark.master)


def shared_out(spark: LazySession, items: Sequence[Item], tasks: int, work: Callable[[Item], Result]) -> list[Result]:
    """`work` for each item, at most so many at the same time. Items and results can be pickled. An error of ours is
    raised here as it was there."""
    session = executors(spark)
    if session is not None:
        return on_executors(session, items, tasks, work)
    return in_threads(items, min(tasks, _threads()), work)


def in_threads(items: Sequence[Item], threads: int, work: Callable[[Item], Result]) -> list[Result]:
    """`work` for each item, in so many threads, each taking the next item that is left. The first error is raised, when
    all that had begun has ended. A process that is to end does not wait for them."""
    if threads <= 1 or len(items) <= 1:
        return [work(item) for item in items]
    results: dict[int, Result] = {}
    errors: list[BaseException] = []
    left, lock = iter(range(len(items))), threading.Lock()

    def run() -> None:
        try:
            while not errors:
                with lock:
                    number = next(left, None)
                if number is None:
                    return
                results[number] = work(items[number])
        except BaseException as error:
            errors.append(error)

    # Whose messages those of a thread are, its context says.
    started = [
        threading.Thread(target=partial(copy_context().run, run), name=f"share {number}", daemon=True)
        for number in range(min(threads, len(items)))
    ]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    if errors:
        raise errors[0]
    return [results[number] for number in range(len(items))]


def _threads() -> int:
    """Two also on one core: while one waits for the source, the other works."""
    return max(2, min(THREADS_MAX, os.cpu_count() or 1))
