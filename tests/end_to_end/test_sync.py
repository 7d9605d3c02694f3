"""`tailrace sync --once`, run after run, with tables in trouble; `tables`, `query` and `drop` on what it made."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from demo.compare import compare
from tests.journey import run


@pytest.mark.timeout(600)
def test_a_sync_with_tables_in_trouble_copies_the_others_and_exits_with_1_until_they_are_mended(
    database: str, tmp_path: Path
) -> None:
    lake = str(tmp_path / "lake")
    execute(
        database,
        """
        create table good (id int primary key, v text);
        insert into good select n, 'v' || n from generate_series(1, 1000) n;
        create table times (id int, at timestamptz, primary key (id, at));
        insert into times values (1, now()), (2, 'infinity');
        create table keyless (v text);
        insert into keyless values ('one');
        create table unnamed (id int primary key, "_row_id_" int);
        """,
    )
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    first = run("sync", database, lake, "--once", TMPDIR=str(temporary))
    assert first.returncode == 1, first
    assert list(temporary.iterdir()) == []
    assert first.stderr == f"in error and left out: public.keyless, public.unnamed; tailrace tables {lake} says why\n"
    equal(database, lake, "public.good", "public.times")
    listed = run("tables", lake)
    assert listed.returncode == 1
    states, _, _ = listed.stdout.partition("\n\n")
    assert [line.split()[:2] for line in states.splitlines()[1:]] == [
        ["public.good", "live"],
        ["public.keyless", "errored"],
        ["public.times", "live"],
        ["public.unnamed", "errored"],
    ]

    execute(database, 'alter table unnamed rename "_row_id_" to "row id"; alter table keyless add primary key (v)')
    execute(database, "delete from times where id = 2; delete from good")
    assert run("tables", "resync", lake, "unnamed").returncode == 0
    second = run("sync", database, lake, "--once")
    assert (second.returncode, second.stderr) == (0, ""), second
    equal(database, lake, "public.good", "public.times", "public.keyless", "public.unnamed")
    assert run("tables", lake).returncode == 0
    assert_private(tmp_path / "lake" / "_tailrace")

    wrong = run("query", lake, "select * from public.goood")
    assert wrong.returncode == 2
    assert "public.good" in wrong.stderr
    assert "Traceback" not in wrong.stderr
    assert_dropped(database, lake)


def assert_private(folder: Path) -> None:
    """Only their owner may read the log, what is said about the lake, and what was logged meanwhile."""
    found = [folder, *folder.rglob("*")]
    assert {"tailrace.log", "head", "cuts.jsonl", "source.json"} <= {path.name for path in found}
    assert [path for path in found if path.stat().st_mode & 0o077] == []


def assert_dropped(database: str, lake: str) -> None:
    """`drop` leaves nothing in the database, and the next sync says so."""
    assert run("drop", database, lake, "--yes").returncode == 0
    with psycopg.connect(database) as conn:
        assert conn.execute("select count(*) from pg_publication").fetchone() == (0,)
        slots = "select count(*) from pg_replication_slots where database = current_database()"
        assert conn.execute(slots).fetchone() == (0,)
    gone = run("sync", database, lake, "--once")
    assert gone.returncode == 2
    assert "is gone" in gone.stderr


def equal(dsn: str, lake: str, *tables: str) -> None:
    assert [table for table in compare(dsn, lake, tables) if not table.equal] == []


def execute(dsn: str, script: str) -> None:
    with psycopg.connect(dsn) as conn:
        conn.execute(script)
