"""Windows: rows read under a brief state of the source."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.doors.one_thread import OneThread
from tests.integration.lake.equality import execute
from tests.integration.lake.states_held import StatesHeld

from tailrace.changes.window_rows import read_staged
from tailrace.connector.copy.window_reader import CHUNKS_A_TASK, NextRows, WindowReader, WindowSizes
from tailrace.model.table import TableId
from tailrace.source.kinds import source_of

ROWS = 2_000
WIDE_ROWS = 1_200
CHUNK_BYTES = 2 << 20


def test_no_state_of_the_source_is_held_before_the_engine_is_ready(database: str, tmp_path: Path) -> None:
    """To start Spark takes seconds, and so may a cluster that is busy."""
    execute(database, f"create table t as select n as id from generate_series(1, {ROWS}) n")
    execute(database, "alter table t add primary key (id); analyze t")
    source, table, engine = source_of(database), TableId("public", "t"), StatesHeld(database)
    sizes = WindowSizes(readers_max=2, chunk_bytes=CHUNK_BYTES, chunk_rows=ROWS // 4)
    reader = WindowReader(source, source.claim(None), engine, tmp_path / "windows", sizes)
    window = reader.read([NextRows(table, (None, [str(ROWS)]), None)])
    assert window.tables[table].rows == ROWS
    assert (engine.when_ready, engine.when_working) == ([0], [1])


@pytest.mark.parametrize("rows_fixed", [None, WIDE_ROWS])
def test_wide_rows_are_read_a_few_at_a_time_and_reconciled_in_small_pieces(
    database: str, tmp_path: Path, rows_fixed: int | None
) -> None:
    """Though the table was never analyzed. Where the size of chunks is fixed, only the pieces are small."""
    execute(database, "create table t (id int primary key, v text); alter table t alter v set storage external")
    execute(database, "alter table t set (autovacuum_enabled = off)")
    execute(database, f"insert into t select n, repeat(md5(n::text), 500) from generate_series(1, {WIDE_ROWS}) n")
    source, table = source_of(database), TableId("public", "t")
    sizes = WindowSizes(readers_max=1, chunk_bytes=CHUNK_BYTES, chunk_rows=rows_fixed)
    reader = WindowReader(source, source.claim(None), OneThread(travels=True), tmp_path / "windows", sizes)
    window = reader.read([NextRows(table, (None, [str(WIDE_ROWS)]), None)]).tables[table]
    if rows_fixed is None:
        assert 50 <= window.rows <= 2 * CHUNKS_A_TASK * CHUNK_BYTES // 16_000
    else:
        assert window.rows == WIDE_ROWS
        assert len(window.staged) >= 5
    assert all(each.bytes < 2 * CHUNK_BYTES for each in window.staged)
    found = [id_ for each in window.staged for id_ in read_staged(each).column("id").to_pylist()]
    assert found == list(range(1, window.rows + 1))
