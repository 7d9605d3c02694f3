"""Groups of rows, read under a brief state of the source."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.integration.lake.equality import execute

from tailrace.errors import TransientError
from tailrace.model.table import TableId
from tailrace.snapshot import windows
from tailrace.snapshot.windows import (
    CHUNKS_A_TASK,
    SPARK_ROWS_MIN,
    Wanted,
    WindowReader,
    read_staged,
)
from tailrace.source.kinds import source_of
from tailrace.source.postgres import _copy_out
from tailrace.spark import sharing
from tailrace.spark.session import LazySession

ROWS = 2 * SPARK_ROWS_MIN


@pytest.mark.parametrize("threads_max", [0, 64])
def test_a_state_of_the_source_is_not_held_until_spark_has_started(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads_max: int
) -> None:
    """Nor is it started at all where threads read as well as its executors would."""
    monkeypatch.setattr(sharing, "THREADS_MAX", threads_max)
    execute(database, f"create table t as select n as id from generate_series(1, {ROWS}) n")
    execute(database, "alter table t add primary key (id); analyze t")
    source, table = source_of(database), TableId("public", "t")
    starting, has_started = threading.Event(), threading.Event()

    def start() -> SparkSession:
        starting.set()
        has_started.wait(10)
        raise TransientError("nothing needs it")

    reader = WindowReader(source, source.claim(None), LazySession(start), tmp_path / "windows", 2, ROWS // 4)
    try:
        group = reader.read([Wanted(table, (None, [str(ROWS)]), None)])
        assert not has_started.is_set()
        assert starting.wait(0 if threads_max else 10) == (threads_max == 0)
    finally:
        has_started.set()
    assert group.tables[table].rows == ROWS


def never() -> SparkSession:
    raise TransientError("nothing needs it")


@pytest.mark.parametrize("rows_fixed", [None, 600])
def test_wide_rows_are_read_a_few_at_a_time_and_reconciled_in_small_pieces(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_fixed: int | None
) -> None:
    """Though the table was never analyzed. Where the size of chunks is fixed, only the pieces are small."""
    monkeypatch.setattr(windows, "CHUNK_BYTES_MAX", 1 << 20)
    monkeypatch.setattr(_copy_out, "PORTION_BYTES", 1 << 18)
    execute(database, "create table t (id int primary key, v text); alter table t alter v set storage external")
    execute(database, "alter table t set (autovacuum_enabled = off)")
    execute(database, "insert into t select n, repeat(md5(n::text), 500) from generate_series(1, 600) n")
    source, table = source_of(database), TableId("public", "t")
    reader = WindowReader(source, source.claim(None), LazySession(never), tmp_path / "windows", 1, rows_fixed)
    group = reader.read([Wanted(table, (None, ["600"]), None)])
    window = group.tables[table]
    if rows_fixed is None:
        assert 50 <= window.rows <= 2 * CHUNKS_A_TASK * (1 << 20) // 16_000
    else:
        assert window.rows == 600
        assert len(window.staged) >= 5
    assert all(each.bytes < 2 << 20 for each in window.staged)
    found = [id_ for each in window.staged for id_ in read_staged(each).column("id").to_pylist()]
    assert found == list(range(1, window.rows + 1))
