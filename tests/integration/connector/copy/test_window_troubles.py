"""What holds up a copy by windows on a real Postgres: it is told, tried again, and stops no one else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from tests.doors.disturbed import DisturbedPostgres
from tests.integration.lake.equality import assert_equal, execute
from tests.integration.postgres.test_window_points import server_of_its_own
from tests.postgres import wait_until
from tests.running import Running, connector_of, running, sync_once

import tailrace
from tailrace.connector.events import TroubleChanged
from tailrace.connector.signals.sender import lake_signals, send_resync
from tailrace.errors import TransientError
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.signal import SignalState
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings, SnapshotMode, TaskSizes
from tailrace.source.kinds import source_of

T, OTHER = TableId("public", "t"), TableId("public", "other")
SETUP = """
create table t (id int primary key, v text);
insert into t select n, 'first' from generate_series(1, 40) n;
create table other (id int primary key, v text);
insert into other select n, 'first' from generate_series(1, 40) n;
"""


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(
        tmp_path / "lake",
        publish_every_seconds=0.1,
        look_at_tables_seconds=0.2,
        window_rows=5,
        readers_max=1,
        sizes=TaskSizes(window_growth_max=1.0, window_seconds=600.0),
    )


def after(count: int, do: Callable[[], None], of: TableId = T) -> Callable[[TableId, str, int], None]:
    """What to do when so many chunks of a table have been read."""

    def disturb(table: TableId, what: str, number: int) -> None:
        if (table, number) == (of, count):
            do()

    return disturb


def impatient(settings: ConnectorSettings) -> ConnectorSettings:
    """Of a run that is to end by itself, and soon."""
    return replace(settings, once=True, retries=replace(settings.retries, patience_seconds=0.5))


def troubles(run: Running) -> list[str]:
    return [event.message for event in list(run.events) if isinstance(event, TroubleChanged) and event.message]


def test_a_run_that_is_to_end_by_itself_gives_up_when_the_source_stays_away(
    settings: ConnectorSettings,
) -> None:
    retries = replace(settings.retries, patience_seconds=2.0)
    once = replace(settings, once=True, snapshot_mode=SnapshotMode.INCREMENTAL, retries=retries)
    with server_of_its_own() as server:
        execute(server.dsn(), SETUP)
        source = DisturbedPostgres(server.dsn(), connections={"patience_seconds": 1.0})
        source.disturbance.begin(after(3, server.stop))
        connector = connector_of(once, source)
        connector.start()
        with pytest.raises(TransientError):
            assert connector.wait(60)
        server.start()
        assert set(sync_once(once, DisturbedPostgres(server.dsn())).values()) == {TableState.LIVE}
        assert_equal(server.dsn(), settings.lake, "public.t", "public.other")


@pytest.mark.proof
def test_a_table_that_is_locked_is_told_of_and_read_later_and_the_others_are_copied_meanwhile(
    database: str, settings: ConnectorSettings
) -> None:
    execute(database, SETUP)
    source = DisturbedPostgres(database)
    with psycopg.connect(database) as locker, running(settings, source) as run:
        run.catch_up()
        source.disturbance.begin(after(2, lambda: locker.execute("lock table t") and None))
        run.connector.resync(T)
        wait_until(lambda: any("t cannot be read while it is locked by pid" in each for each in troubles(run)), 60)
        pid = locker.info.backend_pid
        told = next(
            event for event in run.events if isinstance(event, TroubleChanged) and "locked" in str(event.message)
        )
        assert f"select pg_terminate_backend({pid});" in (told.hint or "")
        run.connector.resync(OTHER)
        run.wait_for_state("public.other", TableState.LIVE, copy=2)
        assert run.connector.tables()[T].state is TableState.RESYNCING
        locker.commit()
        run.wait_for_state("public.t", TableState.LIVE, copy=2)
        run.catch_up()
        assert run.connector.status().trouble is None
        assert_equal(database, run.lake, "public.t", "public.other")


def test_with_once_a_table_that_stays_locked_ends_the_run(database: str, settings: ConnectorSettings) -> None:
    execute(database, SETUP)
    source = DisturbedPostgres(database)
    with psycopg.connect(database) as locker:
        source.disturbance.begin(after(2, lambda: locker.execute("lock table t") and None))
        connector = connector_of(replace(impatient(settings), snapshot_mode=SnapshotMode.INCREMENTAL), source)
        connector.start()
        with pytest.raises(TransientError, match="cannot be read while it is locked by pid"):
            assert connector.wait(60)


def test_with_once_a_transaction_that_wrote_to_a_table_to_be_copied_and_stays_open_ends_the_run(
    database: str, settings: ConnectorSettings
) -> None:
    execute(database, SETUP)
    source, once = source_of(database), impatient(settings)
    sync_once(once, source)
    with psycopg.connect(database) as writer:
        writer.execute("update t set id = id")
        send_resync(once.lake, T)
        connector = connector_of(once, source)
        connector.start()
        pid = writer.info.backend_pid
        with pytest.raises(TransientError, match=f"a copy waits for pid {pid}, which wrote to the table") as caught:
            assert connector.wait(60)
        assert f"select pg_terminate_backend({pid});" in (caught.value.hint or "")
    assert sync_once(once, source)[str(T)] is TableState.LIVE


def test_with_once_a_lock_that_keeps_a_table_from_being_published_ends_the_run(
    database: str, settings: ConnectorSettings
) -> None:
    execute(database, SETUP)
    with psycopg.connect(database) as locker:
        locker.execute("lock table t")
        connector = connector_of(impatient(settings), source_of(database))
        connector.start()
        with pytest.raises(TransientError, match=f"waits for pid {locker.info.backend_pid}") as caught:
            assert connector.wait(60)
        assert "select pg_terminate_backend" in (caught.value.hint or "")


def test_a_table_whose_rows_may_not_be_read_any_more_is_in_error_alone_and_heals(
    database: str, settings: ConnectorSettings
) -> None:
    execute(database, SETUP)
    execute(database, "drop role if exists reading; create role reading login replication superuser")
    execute(
        database, "alter table t owner to reading; alter table other owner to reading; alter role reading nosuperuser"
    )
    execute(
        database,
        "grant pg_read_all_stats to reading; do $$ begin execute 'grant create on database ' ||"
        " quote_ident(current_database()) || ' to reading'; end $$",
    )
    source = DisturbedPostgres(database.replace("postgres@", "reading@"))
    try:
        with running(settings, source) as run:
            run.catch_up()
            source.disturbance.begin(after(3, lambda: execute(database, "revoke select on t from reading")))
            tailrace.signal(run.lake, "execute-snapshot", {"data-collections": [r"public\..*"]}, id="both")
            run.wait_for_state("public.other", TableState.LIVE, copy=2)
            run.wait_for_state("public.t", TableState.ERRORED)
            record = run.connector.tables()[T]
            assert "may not read" in (record.reason or "")
            assert 'grant select on "public"."t" to "reading"' in (record.hint or "")
            execute(database, "update other set v = 'second' where id < 5; update t set v = 'second' where id < 5")
            run.catch_up()
            assert_equal(database, run.lake, "public.other")
            execute(database, record.hint or "")
            run.connector.resync(T)
            run.wait_for_state("public.t", TableState.LIVE, copy=2)
            run.catch_up()
            assert_equal(database, run.lake, "public.t", "public.other")
    finally:
        execute(database, "reassign owned by reading to postgres; drop owned by reading cascade; drop role reading")


@pytest.mark.proof
def test_a_copy_that_was_paused_for_long_continues_where_it_was_though_the_log_has_forgotten_its_beginning(
    database: str, settings: ConnectorSettings
) -> None:
    """Nothing concerns the table meanwhile, so nothing but its stamp says how far it is."""
    execute(database, SETUP)
    retries = replace(settings.retries, restamp_seconds=0.5)
    settings = replace(settings, log_keep_seconds=0.0, log_segment_bytes_max=1 << 20, retries=retries)
    source = DisturbedPostgres(database)
    with running(settings, source) as run:
        run.catch_up()

        def pause() -> None:
            tailrace.signal(run.lake, "pause-snapshot", id="pause")
            wait_until(lambda: states(run.lake).get("again") is SignalState.PAUSED, 60)

        source.disturbance.begin(after(3, pause))
        tailrace.signal(run.lake, "execute-snapshot", {"data-collections": ["public.t"]}, id="again")
        wait_until(lambda: states(run.lake).get("again") is SignalState.PAUSED, 60)
        begun = LogReader(LakeHome(run.lake).log).head.seq
        with psycopg.connect(database, autocommit=True) as conn:

            def has_forgotten() -> bool:
                conn.execute("update other set v = repeat(md5(clock_timestamp()::text), 3000) where id < 10")
                return LogReader(LakeHome(run.lake).log).oldest_seq > begun + 1

            wait_until(has_forgotten, 60)
    read = source.disturbance.done[T, "read"]
    again = DisturbedPostgres(database)
    with running(settings, again) as run:
        tailrace.signal(run.lake, "resume-snapshot", id="resume")
        wait_until(lambda: states(run.lake)["again"] is SignalState.DONE, 60)
        assert run.connector.tables()[T].copy == 2
        run.catch_up()
        assert_equal(database, run.lake, "public.t", "public.other")
    assert again.disturbance.done[T, "read"] <= 8 - read + 2, "it continued"


def states(lake: Path) -> dict[str, SignalState]:
    return {each.signal.id: each.state for each in lake_signals(LakeHome(lake))}
