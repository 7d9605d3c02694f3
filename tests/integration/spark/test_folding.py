"""Changes of a real log, folded in Spark's tasks: what a Tail of all of them comes to, however they were dealt out."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from pyspark.sql import SparkSession
from tests.doors.one_thread import OneThread
from tests.integration.postgres.capturing import Capture
from tests.postgres import wait_until
from tests.unit.changes.histories import (
    History,
    alone,
    assert_as_a_tail,
    fold_of,
    histories,
    logged,
    over,
)
from tests.unit.log.records import in_memory

from tailrace.changes.decoding import Changes
from tailrace.changes.folding import Writers
from tailrace.changes.logged_table import touched_shape
from tailrace.connector.publish.batch import TableFold
from tailrace.engine.door import Job, call
from tailrace.engine.spark.engine import SparkEngine
from tailrace.engine.spark.session import LazySession
from tailrace.log.reader import LogReader
from tailrace.model.table import TableId
from tailrace.settings import TaskSizes
from tailrace.source.postgres.source import PostgresSource

JOB = Job("publish", "here")
TABLE = TableId("public", "t")
STATEMENTS = (
    "insert into t select '-0', g, g, 0, 'first', repeat('big', 3000) from generate_series(1, 8) g",
    "insert into t select 'NaN', 'NaN', g, 0, 'first', repeat('big', 3000) from generate_series(1, 8) g",
    "update t set k = '0', _key = -_key where k = 0 and g <= 6",
    "update t set n = n + 1",
    "delete from t where g = 2",
    "insert into t values ('-0', 2, 2, 0, 'again'), ('NaN', '-NaN', 2, 0, 'again')",
    "update t set k = '-0' where k = 0 and g >= 3",
    "delete from t where g = 5",
    "update t set n = n + 1 where g >= 5",
    "update t set g = g + 10 where g >= 6",
    "update t set g = g + 10, n = n + 1 where g between 16 and 17",
    "update t set big = repeat('new', 3000) where g = 18",
    "update t set g = 99 where g = 18",
)
"""The last ones move rows to other keys and leave a large column out."""


@pytest.fixture
def log(database: str, tmp_path: Path) -> Path:
    """Each statement's transaction in a frame of its own."""
    source = PostgresSource(database)
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(
            'create table t (k float4, _key float8, g int, n int, "a.b" text, big text, primary key (k, _key, g))'
        )
        conn.execute("alter table t alter big set storage external")
        claim = source.claim(None)
        source.prepare(claim, [TABLE], None)
        with Capture(source, claim, tmp_path / "log") as capture:
            for statement in STATEMENTS:
                conn.execute(statement)
                target = source.now().ordinal
                wait_until(lambda target=target: capture.head.ordinal >= target, 20)
    return tmp_path / "log"


@pytest.fixture
def engine(spark: SparkSession) -> SparkEngine:
    return SparkEngine(LazySession(lambda: spark, spark))


def test_equal_keys_meet_in_one_task_even_if_they_look_different(engine: SparkEngine, log: Path) -> None:
    reader = LogReader(log)
    between = 0, reader.head.seq
    shape = touched_shape(reader, TABLE, between, PostgresSource.decode)
    assert shape is not None
    weight = reader.bytes_between(*between)
    sizes = TaskSizes(read_bytes=1, fold_bytes=weight // 8)
    fold = TableFold(str(TABLE), Changes.of(reader, shape, between, 1), Writers(over, alone), weight, sizes)
    assert len(fold.changes.ranges) == len(STATEMENTS), "a task each"
    for other in (engine, OneThread(travels=True)):
        found = fold.divided(other, JOB)
        assert_as_a_tail(found, fold)
        assert len(found.parts) > 4
        assert found.states == 14


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(histories)
def test_any_history_comes_to_the_same_in_spark(engine: SparkEngine, history: History) -> None:
    """Rows that move, truncates, no key, values that columns cannot hold: few histories here, many on one thread."""
    with in_memory() as folder:
        fold = fold_of(logged(Path(folder), history), history, TaskSizes(read_bytes=1 << 10, fold_bytes=1 << 10))
        if fold is not None:
            assert_as_a_tail(engine.map(JOB, [fold.whole], call)[0], fold)
            assert_as_a_tail(fold.divided(engine, JOB), fold)
