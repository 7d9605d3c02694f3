"""A copy that writes watermarks, killed between two of them."""

from __future__ import annotations

import signal
from pathlib import Path

import psycopg
import pytest
from demo.compare import compare
from tests.journey import run

from tailrace.settings import SnapshotMode, Watermarking

SETUP = """
create table signals (id varchar(64) primary key, type varchar(32) not null, data text);
create table t (id int primary key, v text);
insert into t select n, 'first' from generate_series(1, 200) n;
"""


def counted(conn: psycopg.Connection) -> dict[str, int]:
    """How many rows of each type are in the signal table."""
    return dict(conn.execute("select type, count(*) from signals group by type").fetchall())


@pytest.mark.parametrize(
    ("how", "point", "opened"),
    [
        (Watermarking.INSERT_INSERT, "watermarks.opened:3", 3),
        (Watermarking.INSERT_DELETE, "watermarks.opened:3", 1),
        pytest.param(Watermarking.INSERT_DELETE, "watermarks.closed:3", 0, marks=pytest.mark.proof),
    ],
)
def test_killed_inside_a_window_the_next_run_continues_and_a_stale_watermark_does_no_harm(
    database: str, tmp_path: Path, how: Watermarking, point: str, opened: int
) -> None:
    lake = tmp_path / "lake"
    mode = ("--snapshot-mode", SnapshotMode.INCREMENTAL, "--chunk-rows", "10", "--readers", "1")
    sync = ("sync", database, str(lake), "--once", *mode, "--signal-table", "public.signals", "--watermarks", how)
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(SETUP)
        assert run(*sync, TAILRACE_FAILPOINT=point).returncode == -signal.SIGKILL
        assert counted(conn).get("snapshot-window-open", 0) == opened
        conn.execute("update t set v = 'second' where id % 3 = 0; delete from t where id % 7 = 0")
        assert run(*sync).returncode == 0
        left = counted(conn)
    assert [table for table in compare(database, lake, ["public.t"]) if not table.equal] == []
    if how is Watermarking.INSERT_DELETE:
        assert left == {}
    else:
        assert left["snapshot-window-open"] == left["snapshot-window-close"] + 1
