"""Spark as the place of work, behind the engine's door.

The session is started by the first piece of work, or beside other work that comes before it. A JVM that was killed is
started again, and what it was doing is done again: nothing of a job counts before all of it is there.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, TypeVar

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession
from pyspark.sql.functions import spark_partition_id

from tailrace.engine.door import CancelledWorkError, Fold, Job, Split, WorkDone
from tailrace.engine.spark.cluster import has_context
from tailrace.engine.spark.errors import JobError, SessionError, is_spark_gone, reason_of
from tailrace.engine.spark.jobs import Raised, map_shares, shuffle_items
from tailrace.engine.spark.options import local_cores
from tailrace.engine.spark.session import LazySession, is_alive
from tailrace.errors import TailraceError, passing

ATTEMPTS = 3
"""How often a job is begun whose JVM was killed."""
DEATH_SECONDS = 5.0
"""A connection to a JVM breaks some moments before its process is seen to have ended."""
CANCEL_SECONDS = 0.2
"""How often we try again to break off a job that has not begun."""
_NAMES = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")

Item = TypeVar("Item")
Result = TypeVar("Result")

logger = logging.getLogger(__name__)


@dataclass(eq=False)
class _Run:
    """A job that someone waits for."""

    job: Job
    is_cancelled: bool = False
    ended: threading.Event = field(default_factory=threading.Event)


class SparkEngine:
    """Implements `Engine` over a session that several may share. Inside a `with`."""

    def __init__(self, session: LazySession) -> None:
        self._session = session
        self._lock = threading.Lock()
        self._runs: list[_Run] = []
        self._done = WorkDone()

    @property
    def session(self) -> LazySession:
        return self._session

    @property
    def master(self) -> str:
        return self._session.master

    @property
    def cores(self) -> int:
        local = local_cores(self._session.master)
        return local if local is not None else _default_parallelism(self._session.get())

    @property
    def ui_address(self) -> str | None:
        """Where Spark shows its own page; None where it does not, or has yet to start."""
        spark = self._session.started
        return ui_address(spark) if spark is not None else None

    @property
    def done(self) -> WorkDone:
        return self._done

    def map(
        self, job: Job, items: Sequence[Item], work: Callable[[Item], Result], tasks: int | None = None
    ) -> list[Result]:
        if not items:
            return []
        shares = _shares(items, min(tasks or len(items), len(items)))
        results = self._run(job, len(shares), lambda spark: map_shares(spark, shares, work))
        return [result for share in results for result in share]

    def shuffle(
        self, job: Job, items: Sequence[Item], split: Split[Item], tasks: int, fold: Fold[Result]
    ) -> list[Result]:
        if not items:
            return []
        return self._run(job, len(items) + tasks, lambda spark: shuffle_items(spark, items, split, tasks, fold))

    def start_soon(self) -> None:
        self._session.start_soon()

    def await_ready(self) -> None:
        self._session.get()

    def cancel(self, group: str) -> None:
        with self._lock:
            runs = [run for run in self._runs if run.job.group == group]
        for run in runs:
            run.is_cancelled = True
        threading.Thread(target=self._break_off, args=(group, runs), name="cancel", daemon=True).start()

    def _break_off(self, group: str, runs: Sequence[_Run]) -> None:
        """Until all have ended: Spark cancels only what it has begun."""
        for run in runs:
            while not run.ended.wait(0):
                spark = self._session.started
                with suppress(Exception):  # A Spark that is gone has no jobs left.
                    if spark is not None and has_context(spark):
                        spark.sparkContext.cancelJobGroup(group)
                    elif spark is not None:
                        spark.interruptTag(_tag(group))
                run.ended.wait(CANCEL_SECONDS)

    def tasks_done(self, group: str) -> tuple[int, int]:
        spark = self._session.started
        if spark is None or not has_context(spark):
            return 0, 0
        with suppress(Py4JError, ConnectionError):
            tracker = spark.sparkContext.statusTracker()
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
            known = [tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
            stages = [stage for stage in known if stage]
            return sum(each.numCompletedTasks for each in stages), sum(each.numTasks for each in stages)
        return 0, 0

    def __enter__(self) -> SparkEngine:
        self._session.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._session.__exit__()

    def _run(self, job: Job, tasks: int, work: Callable[[SparkSession], list[Any]]) -> list[Any]:
        begun, run = time.monotonic(), _Run(job)
        with self._lock:
            self._runs.append(run)
        try:
            results = self._survived(run, work)
        finally:
            run.ended.set()
            with self._lock:
                self._runs.remove(run)
        with self._lock:
            was = self._done
            self._done = WorkDone(was.jobs + 1, was.tasks + tasks, was.seconds + time.monotonic() - begun)
        for result in results:
            if isinstance(result, Raised):
                raise result.error
        return results

    def _survived(self, run: _Run, work: Callable[[SparkSession], list[Any]]) -> list[Any]:
        """What the job gives, begun again if the JVM dies meanwhile."""
        for attempt in range(1, ATTEMPTS + 1):
            spark = self._session.get()
            try:
                if not run.is_cancelled:
                    with _under_name(spark, run.job):
                        return work(spark)
            except TailraceError:
                raise
            except Exception as error:
                if run.is_cancelled or self._session.has_ended:
                    raise CancelledWorkError(f"cancelled: {run.job.description}") from error
                if not _has_ended(spark, error):
                    raise _error_of(error, run.job) from error
                if attempt == ATTEMPTS or not self._session.is_ours:
                    raise SessionError(f"Spark has ended: {run.job.description}", "see the JVM's log") from error
                logger.warning("Spark has died, and is started again", extra={"job": run.job.description})
            else:
                raise CancelledWorkError(f"cancelled: {run.job.description}")
        raise AssertionError


def _has_ended(spark: SparkSession, error: Exception) -> bool:
    """Whether a job failed because its Spark is no more."""
    deadline = time.monotonic() + (DEATH_SECONDS if is_spark_gone(error) else 0)
    while is_alive(spark):
        if time.monotonic() >= deadline:
            return is_spark_gone(error)
        time.sleep(0.05)
    return True


def _error_of(error: Exception, job: Job) -> Exception:
    """What failed a job, for a person. Of what the JVM met, such as a full disk, only the text comes here."""
    return passing(error) or JobError(f"{reason_of(error)} ({job.description})")


def _default_parallelism(spark: SparkSession) -> int:
    if has_context(spark):
        return int(spark.sparkContext.defaultParallelism)
    # Spark Connect does not say. A range has as many parts as there are cores.
    return int(spark.range(10_000).select(spark_partition_id()).distinct().count())


@contextmanager
def _under_name(spark: SparkSession, job: Job) -> Iterator[None]:
    """What a person sees of the jobs that this thread starts inside. Jobs of its own that follow are not ours."""
    if has_context(spark):
        context = spark.sparkContext
        before = [context.getLocalProperty(name) for name in _NAMES]
        context.setJobGroup(job.group, job.description)
        try:
            yield
        finally:
            with suppress(Exception):  # A Spark that is gone has no names left.
                for name, value in zip(_NAMES, before, strict=True):
                    context.setLocalProperty(name, value)  # type: ignore[arg-type]
        return
    spark.addTag(_tag(job.group))
    try:
        yield
    finally:
        with suppress(Exception):
            spark.removeTag(_tag(job.group))


def _tag(group: str) -> str:
    """Spark Connect refuses commas and empty ones."""
    return group.replace(",", ";") or "tailrace"


def _shares(items: Sequence[Item], tasks: int) -> list[list[Item]]:
    """As even as can be, neighbours together."""
    bounds = [number * len(items) // tasks for number in range(tasks + 1)]
    return [list(items[begin:end]) for begin, end in pairwise(bounds)]


def ui_address(spark: SparkSession) -> str | None:
    """Where a session shows Spark's own page; None where it does not."""
    return spark.sparkContext.uiWebUrl if has_context(spark) else None
