"""The ugly database: everything that ever broke a copy, in one lake, through kills, changes and definitions that move.

`ugly/database.sql` makes it, `ugly/changes.sql` and `ugly/definitions.sql` happen to it. After each, every table that
can be copied equals its source row by row, and every other one says why not.
"""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from demo.compare import compare_tables
from tests.journey import run as run_command
from tests.running import Running, captures, running

import tailrace
from tailrace.connector.status import lake_status
from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.model.table_state import COPYING, TableState
from tailrace.read.duckdb import connect
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

SCRIPTS = Path(__file__).parent / "ugly"
REFUSED = {
    "public.computed_key": "is generated",
    "public.deferred": "deferrable",
    "public.keyless": "no primary key",
    "public.no_columns": "no columns",
}
GONE = {"public.dropped", "public.renamed", "moving.inside"}


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(tmp_path / "lake", publish_every_seconds=1.0, look_at_tables_seconds=1.0)


@pytest.mark.timeout(600)
def test_the_ugly_database_is_copied_followed_and_never_silently_wrong(
    database: str, settings: ConnectorSettings
) -> None:
    execute(database, "database.sql")
    killed = run_command("sync", database, str(settings.lake), "--once", TAILRACE_FAILPOINT="snapshot.table.copied")
    assert killed.returncode == -signal.SIGKILL, killed
    with running(settings, source_of(database)) as run:
        settle(run)
        assert {name for name, _ in reasons(run, TableState.ERRORED)} == set(REFUSED)
        for name, reason in reasons(run, TableState.ERRORED):
            assert REFUSED[name] in reason
        execute(database, "changes.sql")
        kill_capture(settings.lake)
        run.wait_for_live_reads()
        assert_equal(database, run.lake, published=False)
        execute(database, "definitions.sql")
        for table in ("public.rewritten", "public.parted", "public.every_value", "public.replaced", "public.by_index"):
            run.wait_for_state(table, TableState.LIVE, copy=2)
        for table in ("public.renamed_now", "moved_away.inside", "public.keyless"):
            run.wait_for_state(table, TableState.LIVE)
        settle(run)
        assert {name for name, _ in reasons(run, TableState.ERRORED)} == set(REFUSED) - {"public.keyless"} | GONE
    live = {str(table) for table, record in run.connector.tables().items() if record.state is TableState.LIVE}
    with connect() as duckdb:
        assert set(tailrace.cut(duckdb, settings.lake, published=True, register=False).tables) == live
    assert_equal(database, settings.lake, published=True)
    assert_queries(settings.lake)


def execute(database: str, script: str) -> None:
    """Each statement in a transaction of its own, unless it says otherwise."""
    text = re.sub(r"^--.*$", "", (SCRIPTS / script).read_text(encoding="utf-8"), flags=re.MULTILINE)
    with psycopg.connect(database, autocommit=True) as conn:
        for statement in re.split(r";\n", text):
            if statement.strip():
                conn.execute(statement)


def settle(run: Running) -> None:
    """Until every table is copied or in error, and everything that is committed is published."""
    run.wait_for(lambda: all(r.state not in COPYING for r in run.connector.tables().values()) or None)
    run.catch_up()


def reasons(run: Running, state: TableState) -> list[tuple[str, str]]:
    records = run.connector.tables().items()
    return [(str(table), record.reason or "") for table, record in records if record.state is state]


def assert_equal(database: str, lake: Path, *, published: bool) -> None:
    with connect() as duckdb:
        cut = tailrace.cut(duckdb, lake, published=published, register=False)
        tables = {name: cut.tables[name].to_arrow_table() for name in cut.tables}
    if (clashing := tables.get("public.clashing_columns")) is not None:
        assert clashing.column_names == ["id", "a", "A_3"]
        tables["public.clashing_columns"] = clashing.rename_columns(["id", "a", "A"])
    assert [each for each in compare_tables(database, tables) if not each.equal] == []


def kill_capture(lake: Path) -> None:
    """kill -9; the connector starts it again."""
    for process in captures(os.getpid()):
        process.kill()


def assert_queries(lake: Path) -> None:
    """Names mean what they mean in the source; one table's trouble is no other's."""
    with connect() as duckdb:
        cut = tailrace.cut(duckdb, lake, register=False)

        def first(query: str) -> Any:
            return cut.sql(query).fetchall()[0][0]

        assert first("select v from public.orders") == "public 2"
        assert first('select v from audit."public.orders"') == "audit 2"
        assert first('select v from archive."Orders"') == "archive 2"
        assert first('select count(*) from public."Twins"') == 2
        assert first("select count(*) from public.twins") == 3
        assert first("""select count(*) from "odd schema"."ta`b""le.with 'all'" """) == 20
        assert first('select "where" from "select" where "from" = 1') == "x"
        assert first('select "at" from public.infinite') == "infinity"
        assert first("select a_3 from public.clashing_columns where id = 1") == 20
        with pytest.raises(DefiniteError, match=r"table public\.dropped is errored"):
            cut.sql("select * from public.dropped")
    assert {str(each.table) for each in lake_status(LakeHome.find(lake)).tables} >= {"public.dropped", "public.orders"}
