"""Changes that the source has lost, found while a connector runs or by capture alone: repaired where allowed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from demo.embedded import EmbeddedPostgres
from tests.integration.lake.equality import assert_equal, execute
from tests.integration.postgres.test_set_back import Server
from tests.running import running, sync_once

import tailrace
from tailrace.errors import DefiniteError, GapError
from tailrace.lake.home import LakeHome
from tailrace.model.cut import PublishedCut
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings, SnapshotMode
from tailrace.source.door.values import Claim
from tailrace.source.kinds import source_of

TABLE = "public.a"
LIVE = {TABLE: TableState.LIVE}
MADE = "create table a (id int primary key, v text); insert into a select n, 'first' from generate_series(1, 50) n"


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(tmp_path / "lake", once=True)


def claim_of(settings: ConnectorSettings) -> Claim:
    record = LakeHome(settings.lake).source()
    assert record is not None
    return record.claim


@pytest.fixture(scope="module")
def older() -> Iterator[EmbeddedPostgres]:
    """A server that looks a publication up as it was when a change was made."""
    with TemporaryDirectory(prefix="tailrace-") as folder, EmbeddedPostgres(Path(folder) / "data", 16) as server:
        yield server


def test_changes_that_were_made_without_a_publication_are_a_gap_that_windows_repair(
    older: EmbeddedPostgres, settings: ConnectorSettings
) -> None:
    dsn = older.create_database("unpublished")
    execute(dsn, MADE)
    assert sync_once(settings, source_of(dsn)) == LIVE
    execute(dsn, f"drop publication {claim_of(settings)['publication']}")
    execute(dsn, "update a set v = 'unpublished' where id < 10; delete from a where id = 20")
    with pytest.raises(GapError, match="while it had no publication") as caught:
        sync_once(settings, source_of(dsn))
    assert "--snapshot-mode when_needed" in (caught.value.hint or "")
    needed = replace(settings, snapshot_mode=SnapshotMode.WHEN_NEEDED)
    assert sync_once(needed, source_of(dsn)) == LIVE
    assert_equal(dsn, settings.lake, TABLE)
    execute(dsn, "update a set v = 'later' where id > 40")
    assert sync_once(settings, source_of(dsn)) == LIVE
    assert_equal(dsn, settings.lake, TABLE)


def test_a_running_connector_repairs_what_a_dropped_slot_and_a_dropped_publication_have_cost(
    database: str, settings: ConnectorSettings
) -> None:
    execute(database, MADE)
    needed = replace(settings, snapshot_mode=SnapshotMode.WHEN_NEEDED, once=False)
    with (
        running(needed, source_of(database)) as run,
        psycopg.connect(database, autocommit=True) as conn,
    ):
        run.wait_for_state(TABLE, TableState.LIVE)
        slot = claim_of(settings)["slot"]
        with conn.transaction():
            # Nothing of this reaches the log: its reader ends before it is committed.
            conn.execute("update a set v = 'lost' where id < 10; delete from a where id = 20")
            conn.execute(
                "select pg_terminate_backend(active_pid, 5000) from pg_replication_slots where slot_name = %s", [slot]
            )
        conn.execute("select pg_drop_replication_slot(%s)", [slot])
        run.wait_for_state(TABLE, TableState.LIVE, copy=2)
        run.catch_up()
        assert_equal(database, settings.lake, TABLE)
        conn.execute(f"drop publication {claim_of(settings)['publication']}")
        conn.execute("update a set v = 'unsent' where id between 10 and 15")
        run.wait_for_state(TABLE, TableState.LIVE, copy=3)
        run.catch_up()
    assert_equal(database, settings.lake, TABLE)


def test_a_repaired_gap_is_a_commit_of_its_own_and_older_commits_read_as_before(
    database: str, settings: ConnectorSettings
) -> None:
    execute(database, MADE)
    assert sync_once(settings, source_of(database)) == LIVE
    execute(database, "insert into a values (100, 'logged')")
    assert sync_once(settings, source_of(database)) == LIVE
    before = LakeHome(settings.lake).cuts.newest()
    assert before is not None
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("delete from a where id = 100")
        (lost,) = conn.execute("select pg_current_wal_insert_lsn()::text").fetchone() or ("",)
        conn.execute("insert into a values (101, 'lost')")
        slot = claim_of(settings)["slot"]
        conn.execute("select pg_replication_slot_advance(%s, pg_current_wal_lsn())", [slot])
    assert sync_once(replace(settings, snapshot_mode=SnapshotMode.WHEN_NEEDED), source_of(database)) == LIVE
    assert_equal(database, settings.lake, TABLE)
    after = LakeHome(settings.lake).cuts.newest()
    assert after is not None
    assert after.seq > before.seq
    assert after.position > before.position
    assert keys_at(settings.lake, before) == {*range(1, 51), 100}
    assert keys_at(settings.lake, after) == {*range(1, 51), 101}
    with pytest.raises(DefiniteError, match="is lost: no log has it"):
        tailrace.arrow(settings.lake, TABLE, as_of=lost)
    for script in ("select 1", "insert into a values (102, 'later')"):
        execute(database, script)
        assert sync_once(settings, source_of(database)) == LIVE, "the log continues after the gap"
    assert_equal(database, settings.lake, TABLE)
    assert keys_at(settings.lake, before) == {*range(1, 51), 100}


def keys_at(lake: Path, cut: PublishedCut) -> set[int]:
    return set(tailrace.arrow(lake, TABLE, as_of=cut.position).column("id").to_pylist())


@pytest.fixture
def own() -> Iterator[Server]:
    with TemporaryDirectory(prefix="tailrace-") as folder, EmbeddedPostgres(Path(folder) / "data") as embedded:
        yield Server(embedded)


def test_a_lake_is_repaired_on_a_server_that_was_set_back_and_nothing_of_the_lost_history_is_left_in_it(
    own: Server, settings: ConnectorSettings
) -> None:
    own.run(MADE)
    dsn = own.embedded.dsn()
    assert sync_once(settings, source_of(dsn)) == LIVE
    own.keep()
    own.run("create table more (id int); insert into more select n from generate_series(1, 9999) n")
    for number in range(20):
        own.run(f"insert into a values ({100 + number}, 'never happened')", f"delete from a where id = {number}")
    assert sync_once(settings, source_of(dsn), None) == {**LIVE, "public.more": TableState.ERRORED}
    own.put_back()
    own.run("update a set v = 'other' where id between 20 and 30")
    needed = replace(settings, snapshot_mode=SnapshotMode.WHEN_NEEDED)
    for script in ("select 1", "update a set v = 'later' where id > 40", "alter table a add x int default 5"):
        own.run(script)
        assert sync_once(needed, source_of(dsn))[TABLE] is TableState.LIVE
        assert_equal(dsn, settings.lake, TABLE)
    record = LakeHome(settings.lake).tables.load()[LakeHome(settings.lake).table_named("a")]
    assert record.copy == 3, "once after the gap, once after the default"


def test_a_lake_is_repaired_on_another_server_that_took_the_place_of_its_own(
    own: Server, database: str, settings: ConnectorSettings
) -> None:
    execute(database, "create table a (id int primary key, v text); insert into a values (1, 'theirs')")
    moved = database.rsplit("/", 1)[1]
    assert sync_once(settings, source_of(database)) == LIVE
    own.run(f"create database {moved}")
    dsn = own.embedded.dsn(moved)
    execute(dsn, MADE)
    with pytest.raises(GapError, match="of another server") as caught:
        sync_once(settings, source_of(dsn))
    assert "--snapshot-mode when_needed" in (caught.value.hint or "")
    needed = replace(settings, snapshot_mode=SnapshotMode.WHEN_NEEDED)
    for script in ("select 1", "update a set v = 'later' where id > 40"):
        execute(dsn, script)
        assert sync_once(needed, source_of(dsn)) == LIVE
        assert_equal(dsn, settings.lake, TABLE)
