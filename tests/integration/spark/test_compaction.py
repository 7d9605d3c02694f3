"""Compaction on executors, on a real log: what the driver comes to, however the events were dealt out."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.integration.postgres.capturing import Capture
from tests.postgres import wait_until

from tailrace.changes.decoding import changes_here
from tailrace.changes.tail import Tail, touched_shape
from tailrace.log.reader import LogReader
from tailrace.model.table import TableId
from tailrace.source.postgres.source import PostgresSource
from tailrace.spark import compaction

TABLE = TableId("public", "t")
STATEMENTS = (
    "insert into t select '-0', g, g, 0, 'first' from generate_series(1, 8) g",
    "insert into t select 'NaN', 'NaN', g, 0, 'first' from generate_series(1, 8) g",
    "update t set k = '0', _key = -_key where k = 0 and g <= 6",
    "update t set n = n + 1",
    "delete from t where g = 2",
    "insert into t values ('-0', 2, 2, 0, 'again'), ('NaN', '-NaN', 2, 0, 'again')",
    "update t set k = '-0' where k = 0 and g >= 3",
    "delete from t where g = 5",
    "update t set n = n + 1 where g >= 5",
)


@pytest.fixture
def log(database: str, tmp_path: Path) -> Path:
    """Each statement's transaction in a frame of its own."""
    source = PostgresSource(database)
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute('create table t (k float4, _key float8, g int, n int, "a.b" text, primary key (k, _key, g))')
        claim = source.claim(None)
        source.prepare(claim, [TABLE], None)
        with Capture(source, claim, tmp_path / "log") as capture:
            for statement in STATEMENTS:
                conn.execute(statement)
                target = source.now().ordinal
                wait_until(lambda target=target: capture.head.ordinal >= target, 20)
    return tmp_path / "log"


def test_equal_keys_meet_in_one_task_even_if_they_look_different(
    spark: SparkSession, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = LogReader(log)
    between = 0, reader.head.seq
    shape = touched_shape(reader, TABLE, between, PostgresSource.decode)
    assert shape is not None
    monkeypatch.setattr(compaction, "TASK_BYTES", 1)
    assert len(reader.ranges(*between, 1, shape.relations)) == len(STATEMENTS), "as many tasks on both sides"
    on_executors = compaction.ExecutorTail(spark, reader, shape, *between)
    here = Tail(shape, changes_here(reader, *between, shape))
    assert in_order(on_executors.states.toArrow()) == in_order(here.states)
    assert len(in_order(here.states)) == 14


def in_order(states: pa.Table) -> list[str]:
    return sorted(map(repr, states.to_pylist()))
