"""`tailrace offsets` on a real lake: what an edit says is what happens, and the lake equals the source afterwards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest
from demo.compare import compare
from tests.journey import interrupt, run, start_shared, wait_for_cuts

from tailrace.log.reader import LogReader

TABLES = ("public.orders", "public.lines")
SETUP = """
create table orders (id int primary key, note text);
create table lines (id int primary key, order_id int);
insert into orders select n, 'new' from generate_series(1, 100) n;
insert into lines select n, n from generate_series(1, 100) n;
"""


def offset_of(lake: str) -> dict[str, Any]:
    found = run("offsets", "get", lake)
    assert found.returncode == 0, found
    offset: dict[str, Any] = json.loads(found.stdout)["offsets"][0]["offset"]
    return offset


def body(database: str, **offset: int) -> str:
    server = database.rpartition("/")[2]
    return json.dumps({"offsets": [{"partition": {"server": server}, "offset": offset}]})


def commit(conn: psycopg.Connection, statement: str) -> int:
    """One transaction; its number."""
    with conn.transaction():
        conn.execute(statement)
        (xid,) = conn.execute("select pg_current_xact_id()::text::bigint").fetchone() or (0,)
    return int(xid)


@pytest.mark.timeout(600)
def test_an_edit_says_what_follows_and_that_is_what_happens(database: str, tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(SETUP)
        assert run("sync", database, lake, "--once").returncode == 0
        before = offset_of(lake)
        skipped = [
            commit(conn, "update orders set note = 'paid' where id = 3"),
            commit(conn, "delete from lines where id = 5"),
        ]
        (target,) = conn.execute("select pg_current_wal_insert_lsn() - '0/0'").fetchone() or (0,)
        taken = commit(conn, "insert into orders values (200, 'late')")
    edit = body(database, lsn=int(target))
    beyond = run("offsets", "set", lake, body(database, lsn=2**62), "--dsn", database)
    assert (beyond.returncode, "where the source's own log ends" in beyond.stderr) == (2, True)
    dry = run("offsets", "set", lake, edit, "--dsn", database, "--dry-run")
    assert dry.returncode == 0, dry
    assert f"lsn: {before['lsn']} → {target}" in dry.stdout
    assert "2 transactions skipped and never logged: the next start copies 2 tables again by windows" in dry.stdout
    assert run("offsets", "history", lake, "--json").stdout == ""
    made = run("offsets", "set", lake, edit, "--dsn", database)
    assert "edit 1 (set) waits for the next tailrace sync" in made.stdout, made
    assert offset_of(lake) == {"lsn": target}
    asked = run("offsets", "get", lake, "--dsn", database)
    assert "wal_status reserved" in asked.stderr, asked
    late = run("offsets", "reset", lake, "--version", "0")
    assert (late.returncode, "edit 1 is there, not 0" in late.stderr) == (2, True)
    assert run("sync", database, lake, "--once").returncode == 0
    assert [each.equal for each in compare(database, lake, TABLES)] == [True, True]
    reader = LogReader(Path(lake) / "_tailrace" / "log")
    logged = reader.transactions(0, reader.head.seq).column("xid").to_pylist()
    assert (taken in logged, set(skipped) & set(logged)) == (True, set())
    assert offset_of(lake)["txId"] == taken


@pytest.mark.timeout(600)
def test_a_running_sync_is_read_and_never_edited_and_a_reset_can_be_taken_back(database: str, tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(SETUP)
    process = start_shared("sync", database, lake)
    wait_for_cuts(process, Path(lake), 1)
    assert offset_of(lake)["lsn"] > 0
    for command in (("reset", lake), ("undo", lake), ("set", lake, body(database, lsn=offset_of(lake)["lsn"]))):
        refused = run("offsets", *command)
        assert (refused.returncode, "only when it is stopped" in refused.stderr) == (2, True), refused
    assert interrupt(process)[0] == 0
    assert run("offsets", "reset", lake).returncode == 0
    assert json.loads(run("offsets", "get", lake).stdout) == {"offsets": []}
    assert "edit 1 would be taken back" in run("offsets", "undo", lake, "--dry-run").stdout
    assert "nothing comes of it" in run("offsets", "undo", lake).stdout
    assert offset_of(lake)["lsn"] > 0
    edits = [json.loads(line) for line in run("offsets", "history", lake, "--json").stdout.splitlines()]
    assert [(each["kind"], each["state"]) for each in edits] == [("reset", "undone"), ("undo", "taken")]
