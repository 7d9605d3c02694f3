"""How tables get the rows that they have: the modes that are not the usual one. Postgres and Delta."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from tests.integration.lake.equality import assert_equal, execute
from tests.running import sync_once

import tailrace
from tailrace.connector.signals.sender import send_resync
from tailrace.errors import GapError
from tailrace.lake.formats import format_named
from tailrace.lake.home import LakeHome
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings, SnapshotMode, TaskSizes
from tailrace.source.kinds import source_of

TABLES = ("public.a", "public.b")


@pytest.fixture
def source(database: str) -> str:
    execute(database, "create table a (id int primary key, v text); create table b (id int primary key, v text)")
    execute(database, "insert into a select n, 'first' from generate_series(1, 200) n; insert into b values (1, 'one')")
    return database


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(tmp_path / "lake", once=True, window_rows=20)


def test_without_their_rows_tables_have_what_changed_since_and_never_stop(
    source: str, settings: ConnectorSettings
) -> None:
    never = replace(settings, snapshot_mode=SnapshotMode.NEVER)
    for script in (
        "select 1",
        "update a set v = 'second' where id <= 2; delete from a where id = 3; insert into a values (1000, 'new')",
        "update a set v = 'third' where id in (2, 4, 1000); update b set id = 2; delete from a where id = 1",
    ):
        execute(source, script)
        assert sync_once(never, source_of(source)) == dict.fromkeys(TABLES, TableState.LIVE)
    found = tailrace.arrow(settings.lake, "public.a").sort_by("id").to_pylist()
    assert found == [{"id": n, "v": "third"} for n in (2, 4, 1000)]
    assert tailrace.arrow(settings.lake, "public.b").to_pylist() == [{"id": 2, "v": "one"}]
    send_resync(settings.lake, LakeHome(settings.lake).table_named("a"))
    assert sync_once(never, source_of(source)) == dict.fromkeys(TABLES, TableState.LIVE)
    assert_equal(source, settings.lake, "public.a")


@pytest.mark.parametrize("another_reads", [False, True])
def test_changes_that_the_source_has_lost_are_made_up_for_by_windows_when_that_is_allowed(
    source: str, settings: ConnectorSettings, *, another_reads: bool
) -> None:
    sync_once(settings, source_of(source))
    record = LakeHome(settings.lake).source()
    assert record is not None
    execute(
        source, "update a set v = 'lost' where id > 100; delete from a where id < 50; insert into b values (2, 'x')"
    )
    with psycopg.connect(source, autocommit=True) as connection:
        if another_reads:
            connection.execute("select pg_replication_slot_advance(%s, pg_current_wal_lsn())", [record.claim["slot"]])
        else:
            connection.execute("select pg_drop_replication_slot(%s)", [record.claim["slot"]])
    with pytest.raises(GapError):
        sync_once(settings, source_of(source))
    before = tailrace.arrow(settings.lake, "public.a").num_rows
    assert before == 200, "the last good state is readable"
    needed = replace(settings, snapshot_mode=SnapshotMode.WHEN_NEEDED)
    assert sync_once(needed, source_of(source)) == dict.fromkeys(TABLES, TableState.LIVE)
    assert_equal(source, settings.lake, *TABLES)
    execute(source, "update a set v = 'later'; delete from b where id = 1")
    assert sync_once(settings, source_of(source)) == dict.fromkeys(TABLES, TableState.LIVE)
    assert_equal(source, settings.lake, *TABLES)
    copies = [record.copy for record in LakeHome(settings.lake).tables.load().values()]
    assert copies == [2, 2]


@pytest.mark.parametrize("is_large", [False, True])
def test_a_table_that_is_large_is_copied_by_windows_from_the_start(
    source: str, settings: ConnectorSettings, *, is_large: bool
) -> None:
    """By its bytes, though it was never analyzed."""
    settings = replace(settings, sizes=TaskSizes(windows_bytes_min=1 << (12 if is_large else 30)))
    assert sync_once(settings, source_of(source)) == dict.fromkeys(TABLES, TableState.LIVE)
    assert_equal(source, settings.lake, *TABLES)
    stored = format_named("delta").table(LakeHome(settings.lake).place_of(TableId("public", "a")))
    version = stored.version()
    assert version is not None
    assert (version.number > 1) == is_large


def test_with_initial_only_a_run_ends_by_itself_when_all_is_copied(source: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tailrace.cli.main", "sync", source, str(tmp_path / "lake")]
    done = subprocess.run([*command, "--snapshot-mode", "initial_only"], check=False, timeout=120)
    assert done.returncode == 0
    assert_equal(source, tmp_path / "lake", *TABLES)
