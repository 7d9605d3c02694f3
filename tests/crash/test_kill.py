"""kill -9 at the worst moments, then the same command again: the lake equals the source."""

from __future__ import annotations

import signal
from pathlib import Path

import psutil
import psycopg
import pytest
from demo.compare import compare
from tests.journey import cuts, run
from tests.postgres import wait_until

from tailrace.lake.formats import format_named
from tailrace.storage.local import LocalFolder

TABLES = ("public.a", "public.b")
SETUP = """
create table a (id int primary key, v text);
create table b (id int, v text);
alter table b replica identity full;
insert into a select n, 'first' from generate_series(1, 1000) n;
insert into b select n % 700, 'first' from generate_series(1, 1000) n;
"""
"""The second one has no key, and some rows twice."""
CHANGE = (
    "update a set v = '{0}' where id % 3 = 0; delete from a where id = {1}; update b set v = '{0}' where id % 2 = 0;"
    "delete from b where ctid in (select max(ctid) from b where id < 9 group by id)"
)


@pytest.mark.timeout(600)
def test_killed_in_the_snapshot_and_between_two_publishes_the_lake_still_equals_the_source(
    database: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    sync = ("sync", database, str(lake), "--once")
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(SETUP)
        assert run(*sync, TAILRACE_FAILPOINT="snapshot.table.copied").returncode == -signal.SIGKILL
        assert sorted(seqs(lake), key=str) in ([0], [0, 0], [0, None])
        assert cuts(lake).all() == []

        conn.execute(CHANGE.format("second", 1))
        assert run(*sync, TAILRACE_FAILPOINT="publish.table").returncode == -signal.SIGKILL
        assert [cut.seq for cut in cuts(lake).all()] in ([], [0])
        assert max(seq or 0 for seq in seqs(lake)) == 1, "one table has the change, and no cut says so"

        conn.execute(CHANGE.format("third", 2))
    assert run(*sync).returncode == 0
    assert [table for table in compare(database, lake, TABLES) if not table.equal] == []
    wait_until(lambda: not [p for p in psutil.process_iter(["cmdline"]) if str(lake) in str(p.info["cmdline"])], 20)


def seqs(lake: Path) -> list[int | None]:
    """For each table that has its rows, the transaction it stands at, 0 for a snapshot's; None for the others."""
    versions = [format_named("delta").table(LocalFolder(path)).version() for path in (lake / "public").iterdir()]
    return [version.stamp.seq or 0 if version and version.stamp else None for version in versions]
