"""Several in one process who use the same Spark: who stops it, and when."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, cast

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tailrace.engine.spark.errors import SessionError
from tailrace.engine.spark.session import LazySession


class Started:
    """In place of a Spark: says how often it was stopped."""

    stops = 0

    def stop(self) -> None:
        self.stops += 1


@pytest.fixture(autouse=True)
def none_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another test may have left a Spark."""
    monkeypatch.setattr(SparkContext, "_active_spark_context", None)


def lazy(started: Started, barrier: Barrier | None = None) -> LazySession:
    def start() -> SparkSession:
        if barrier is not None:
            barrier.wait(30)
        return cast(Any, started)

    return LazySession(start)


def test_the_last_who_uses_a_spark_stops_it_whoever_started_it() -> None:
    started, barrier = Started(), Barrier(2)
    with lazy(started, barrier) as one:
        with lazy(started, barrier) as other, ThreadPoolExecutor(2) as pool:
            assert list(pool.map(lambda each: each.get(), [one, other])) == [started, started]
        assert started.stops == 0
    assert started.stops == 1


def test_one_whose_start_failed_keeps_no_other_from_stopping_its_own() -> None:
    def never() -> SparkSession:
        raise SessionError("Spark did not start", "see spark.log")

    started = Started()
    with LazySession(never) as failed, lazy(started) as one:
        with pytest.raises(SessionError):
            failed.get()
        one.get()
    assert started.stops == 1
