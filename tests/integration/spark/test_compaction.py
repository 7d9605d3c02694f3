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


def test_equal_keys_meet_in_one_task_even_if_they_look_different(
    spark: SparkSession, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = LogReader(log)
    between = 0, reader.head.seq
    shape = touched_shape(reader, TABLE, between, PostgresSource.decode)
    assert shape is not None
    monkeypatch.setattr(compaction, "READ_BYTES", 1)
    monkeypatch.setattr(compaction, "FOLD_BYTES", reader.bytes_between(*between) // 8)
    assert len(reader.ranges(*between, 1, shape.relations)) == len(STATEMENTS), "a task each"
    parts = compaction.ExecutorTail(spark, reader, shape, *between).folded(pa.Table.from_batches)
    here = Tail(shape, changes_here(reader, *between, shape))
    assert len(parts) > 4
    assert in_order(pa.concat_tables(parts)) == in_order(here.states)
    assert len(in_order(here.states)) == 14


def in_order(states: pa.Table) -> list[str]:
    return sorted(map(repr, states.to_pylist()))
