"""Spark behind the engine's door."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.doors.engine_promises import JOB, assert_maps, assert_raises, assert_shuffles, by_number, doubled, folded

from tailrace.engine.spark.engine import SparkEngine
from tailrace.engine.spark.session import LazySession


@pytest.fixture
def engine(spark: SparkSession) -> SparkEngine:
    return SparkEngine(LazySession(lambda: spark, spark))


def test_it_keeps_the_promises_of_every_engine(engine: SparkEngine) -> None:
    assert_maps(engine)
    assert_shuffles(engine)
    assert_raises(engine)
    done, total = engine.tasks_done(JOB.group)
    assert 0 < done <= total


def test_a_worker_that_is_killed_is_replaced_and_its_task_done_again(engine: SparkEngine, tmp_path: Path) -> None:
    assert engine.map(JOB, [1, 2, 3], partial(doubled, tmp_path / "map")) == [2, 4, 6]
    found = engine.shuffle(JOB, [2, 4], by_number, 6, partial(folded, tmp_path / "fold"))
    assert found == [[b"2 ", b"4 ", b"4 "], [b"2 ", b"4 "], [b"4 "]]
