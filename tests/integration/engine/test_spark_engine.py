"""The engine's two verbs as jobs of a real Spark: order, errors, retries, names and cancelling."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.postgres import wait_until

from tailrace.engine.door import CancelledWorkError, Job
from tailrace.engine.spark.engine import SparkEngine
from tailrace.engine.spark.errors import JobError
from tailrace.engine.spark.session import LazySession
from tailrace.engine.spark.watching import SparkSeen, look
from tailrace.errors import TextKeyError, TransientError

JOB = Job("publish 2 tables", "shop publish")


@pytest.fixture
def engine(spark: SparkSession) -> Iterator[SparkEngine]:
    with SparkEngine(LazySession(lambda: spark, spark)) as engine:
        yield engine


def test_results_come_in_the_order_of_the_items_each_from_a_task_or_several_from_one(engine: SparkEngine) -> None:
    def where(item: int) -> tuple[int, int | None]:
        from pyspark import TaskContext

        context = TaskContext.get()
        return item, context and context.partitionId()

    assert engine.map(JOB, range(5), where) == [(item, item) for item in range(5)]
    assert engine.map(JOB, range(5), where, 2) == [(0, 0), (1, 0), (2, 1), (3, 1), (4, 1)]
    assert engine.map(JOB, [1], where, 7) == [(1, 0)]
    assert engine.map(JOB, [], where) == []
    assert (engine.done.jobs, engine.done.tasks) == (3, 8)


def test_blobs_meet_in_the_task_that_they_are_dealt_to(engine: SparkEngine) -> None:
    def split(item: int) -> Iterator[tuple[int, bytes]]:
        yield item % 2, b"%d" % item
        yield 3, b""

    def fold(blobs: Iterable[bytes]) -> list[bytes]:
        return sorted(blobs)

    assert engine.shuffle(JOB, range(6), split, 5, fold) == [[b"0", b"2", b"4"], [b"1", b"3", b"5"], [b""] * 6]
    assert engine.shuffle(JOB, [], split, 5, fold) == []
    assert engine.shuffle(JOB, [1], lambda item: (), 5, fold) == [], "nothing was dealt out"


def test_large_blobs_pass_through_a_shuffle(engine: SparkEngine) -> None:
    def split(item: int) -> Iterator[tuple[int, bytes]]:
        for task in range(2):
            yield task, bytes([item]) * (24 << 20)

    def fold(blobs: Iterable[bytes]) -> tuple[int, set[int]]:
        sizes = [(len(blob), blob[0]) for blob in blobs]
        return sum(size for size, _ in sizes), {first for _, first in sizes}

    assert engine.shuffle(JOB, range(4), split, 2, fold) == [(96 << 20, {0, 1, 2, 3})] * 2


def test_an_error_of_ours_comes_back_as_itself_and_is_not_tried_again(engine: SparkEngine, tmp_path: Path) -> None:
    tries = tmp_path / "tries"

    def fail(item: int) -> None:
        with tries.open("a") as file:
            file.write(f"{item}\n")
        if item == 1:
            raise TextKeyError.found("public.t", "the value 'x'", 7, [2, "day"])

    with pytest.raises(TextKeyError) as caught:
        engine.map(JOB, range(3), fail)
    error = caught.value
    assert (error.message, error.table, error.relation, error.columns) == (
        "public.t: the value 'x'",
        "public.t",
        7,
        [2, "day"],
    )
    assert error.hint == "it is copied again by a running or the next tailrace sync"
    assert sorted(tries.read_text().split()) == ["0", "1", "2"]


@pytest.mark.parametrize("where", ["split", "fold", "split that is not read"])
def test_an_error_of_ours_comes_back_through_a_shuffle(engine: SparkEngine, where: str) -> None:
    def split(item: int) -> Iterator[tuple[int, bytes]]:
        yield item, b"blob"
        if where != "fold" and item == 1:
            raise TransientError("the source is gone", "it is tried again", "public.t")

    def fold(blobs: Iterable[bytes]) -> int:
        if where == "split that is not read":
            return 0
        if where == "fold":
            raise TransientError("the source is gone", "it is tried again", "public.t")
        return len(list(blobs))

    with pytest.raises(TransientError, match="the source is gone") as caught:
        engine.shuffle(JOB, range(3), split, 3, fold)
    assert (caught.value.hint, caught.value.table) == ("it is tried again", "public.t")


def test_a_full_disk_is_an_error_that_passes(engine: SparkEngine) -> None:
    def write(item: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/lake/part")

    with pytest.raises(TransientError, match="no space left on device: /lake/part"):
        engine.map(JOB, [1], write)


def test_any_other_error_fails_the_job_when_spark_has_tried_it_four_times(engine: SparkEngine, tmp_path: Path) -> None:
    tries = tmp_path / "tries"

    def fail(item: int) -> None:
        with tries.open("a") as file:
            file.write("x\n")
        raise ValueError("an odd value")

    with pytest.raises(JobError, match=r"^ValueError: an odd value \(publish 2 tables\)$"):
        engine.map(JOB, [1], fail)
    assert len(tries.read_text().split()) == 4


def test_a_worker_that_is_killed_has_its_task_done_again(engine: SparkEngine, tmp_path: Path) -> None:
    killed = tmp_path / "killed"

    def die_once(item: int) -> int:
        if item == 1 and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return item

    assert engine.map(JOB, range(3), die_once) == [0, 1, 2]
    assert killed.exists()


def test_a_task_whose_worker_dies_every_time_fails_the_job_and_names_it(engine: SparkEngine) -> None:
    def die(item: int) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(JobError, match=r"^Python worker exited unexpectedly.*\(publish 2 tables\)$"):
        engine.map(JOB, [1], die)


def test_a_job_has_a_name_and_tells_how_far_it_is_until_it_is_cancelled(
    engine: SparkEngine, spark: SparkSession, tmp_path: Path
) -> None:
    def wait(item: int) -> None:
        (tmp_path / f"begun-{item}").touch()
        if item:
            threading.Event().wait(600)

    group = f"shop {tmp_path}"
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(engine.map, Job("copy shop", group), range(2), wait)
        wait_until(lambda: engine.tasks_done(group) == (1, 2) or waiting.done(), 60)
        tracker = spark.sparkContext.statusTracker()
        [number] = tracker.getJobIdsForGroup(group)
        info = tracker.getJobInfo(number)
        assert info is not None
        assert info.status == "RUNNING"
        begun = time.monotonic()
        engine.cancel(group)
        with pytest.raises(CancelledWorkError, match="cancelled: copy shop"):
            waiting.result(30)
    assert time.monotonic() - begun < 5
    assert engine.map(Job("copy shop", group), [1], str) == ["1"], "the group goes on"


def test_a_job_that_is_cancelled_while_spark_starts_does_not_begin(spark: SparkSession) -> None:
    begun, released = threading.Event(), threading.Event()

    def start() -> SparkSession:
        begun.set()
        assert released.wait(30)
        return spark

    with SparkEngine(LazySession(start)) as engine, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(engine.map, JOB, [1], str)
        assert begun.wait(30)
        engine.cancel(JOB.group)
        released.set()
        with pytest.raises(CancelledWorkError):
            waiting.result(30)


def test_what_a_thread_does_itself_afterwards_does_not_bear_our_name(engine: SparkEngine, spark: SparkSession) -> None:
    context = spark.sparkContext
    context.setJobGroup("mine", "my own work")
    try:
        engine.map(JOB, [1], str)
        assert context.getLocalProperty("spark.jobGroup.id") == "mine"
        assert context.getLocalProperty("spark.job.description") == "my own work"
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]


def test_jobs_of_many_threads_run_beside_each_other(engine: SparkEngine) -> None:
    def one(number: int) -> list[int]:
        return engine.map(Job(f"job {number}", f"group {number}"), [number, number + 1], lambda item: 10 * item)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(24))) == [[10 * n, 10 * n + 10] for n in range(24)]
    assert engine.done.tasks == 48


def test_a_spark_that_works_can_be_looked_at_and_one_that_was_not_started_stays_so(spark: SparkSession) -> None:
    def fail(item: int) -> int:
        raise AssertionError(f"{item} cannot be worked on")

    idle = LazySession(lambda: pytest.fail("looking must not start it"), master="local[3]")
    assert look(idle, 50) == SparkSeen("local[3]")
    with SparkEngine(LazySession(lambda: spark, spark)) as engine:
        engine.map(JOB, range(3), str)
        with pytest.raises(JobError):
            engine.map(Job("copy <b>t</b>", "shop copy"), [1], fail)
        seen = look(engine.session, 2)
    assert (seen.is_up, seen.problem, seen.application) == (True, None, spark.sparkContext.applicationId)
    failed, done = seen.jobs
    assert (done.description, done.group, done.state) == ("publish 2 tables", "shop publish", "succeeded")
    assert (done.tasks, done.tasks_done, done.tasks_failed) == (3, 3, 0)
    assert done.begun is not None
    assert done.ended is not None
    assert done.begun <= done.ended
    assert (failed.description, failed.state) == ("copy <b>t</b>", "failed")
    assert failed.number > done.number
