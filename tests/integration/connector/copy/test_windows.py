"""Copies by windows, beside the stream: Postgres and Delta."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from tests.doors.disturbed import DisturbedPostgres
from tests.integration.lake.equality import assert_equal, execute
from tests.load import Load, writers
from tests.postgres import wait_until
from tests.running import running, sync_once

import tailrace
from tailrace.connector.signals.sender import lake_signals
from tailrace.lake.home import LakeHome
from tailrace.model.notification import CopyStep
from tailrace.model.signal import SignalRecord, SignalState
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings, SnapshotMode
from tailrace.source.kinds import source_of

ORDERS = "public.orders"
ROWS = 1000
LARGE = "repeat(md5({0}::text), 200)"
SETUP = f"""
create table orders (id int primary key, note text, large text);
alter table orders alter large set storage external;
insert into orders select n, 'first', {LARGE.format("n")} from generate_series(1, {ROWS}) n;
create table other (id int primary key, v text);
insert into other select n, 'v' from generate_series(1, 10) n;
"""
LOAD = Load(
    (
        "update orders set note = %(text)s where id = %(key)s",
        f"update orders set large = {LARGE.format('random()')} where id = %(key)s",
        "delete from orders where id = %(key)s",
        f"insert into orders values (%(key)s, %(text)s, {LARGE.format('random()')}) on conflict do nothing",
        "update orders set id = %(other)s where id = %(key)s and not exists (select from orders where id = %(other)s)",
    ),
    keys_max=ROWS + 200,
)


@pytest.fixture
def source(database: str) -> str:
    execute(database, SETUP)
    return database


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(tmp_path / "lake", publish_every_seconds=0.1, look_at_tables_seconds=0.5, window_rows=50)


def test_a_table_that_is_copied_again_under_load_equals_the_source(source: str, settings: ConnectorSettings) -> None:
    """The same in Spark's tasks is test_window_executors.py's."""
    with running(settings, source_of(source)) as run:
        run.catch_up()
        with writers(source, LOAD):
            run.connector.resync(TableId("public", "orders"))
            run.wait_for_state(ORDERS, TableState.LIVE, copy=2)
        run.catch_up()
        assert_equal(source, run.lake, ORDERS, "public.other")


def test_a_lake_may_begin_by_windows_alone(source: str, settings: ConnectorSettings) -> None:
    states = sync_once(replace(settings, snapshot_mode=SnapshotMode.INCREMENTAL, once=True), source_of(source))
    assert set(states.values()) == {TableState.LIVE}
    assert_equal(source, settings.lake, ORDERS, "public.other")
    assert not LakeHome(settings.lake).windows.exists() or not list(LakeHome(settings.lake).windows.iterdir())


def wait_for_signal(lake: Path, id_: str, *states: SignalState) -> SignalRecord:
    found: list[SignalRecord] = []

    def is_there() -> bool:
        found[:] = [r for r in lake_signals(LakeHome(lake)) if r.signal.id == id_ and r.state in states]
        return bool(found)

    wait_until(is_there, 40)
    return found[0]


def test_signals_start_pause_resume_and_stop_copies_and_tell_what_became_of_them(
    source: str, settings: ConnectorSettings
) -> None:
    with running(settings, source_of(source)) as run:
        run.catch_up()
        tailrace.signal(run.lake, "execute-snapshot", {"data-collections": [r"public\.o.*", "public.none"]}, id="all")
        done = wait_for_signal(run.lake, "all", SignalState.DONE)
        assert done.result == "2 of 2 tables copied; no table matches public.none"
        tailrace.signal(run.lake, "pause-snapshot", id="pause")
        wait_for_signal(run.lake, "pause", SignalState.DONE)
        tailrace.signal(run.lake, "execute-snapshot", {"data-collections": [ORDERS]}, id="one")
        wait_for_signal(run.lake, "one", SignalState.PAUSED)
        execute(source, "update other set v = 'streamed'; update orders set note = 'streamed'")
        run.catch_up()
        assert_equal(source, run.lake, "public.other")
        assert run.connector.tables()[TableId("public", "orders")].state is TableState.RESYNCING
        tailrace.signal(run.lake, "resume-snapshot", {"data-collections": [ORDERS]}, id="resume")
        wait_for_signal(run.lake, "one", SignalState.DONE)
        run.catch_up()
        assert_equal(source, run.lake, ORDERS, "public.other")
        tailrace.signal(run.lake, "pause-snapshot", id="pause again")
        tailrace.signal(run.lake, "execute-snapshot", {"data-collections": [ORDERS], "type": "blocking"}, id="two")
        wait_for_signal(run.lake, "two", SignalState.PAUSED)
        tailrace.signal(run.lake, "stop-snapshot", {"data-collections": [ORDERS]}, id="stop")
        wait_for_signal(run.lake, "two", SignalState.STOPPED)
        run.wait_for_state(ORDERS, TableState.ERRORED)
        tailrace.signal(run.lake, "resume-snapshot", id="resume again")
        tailrace.signal(run.lake, "execute-snapshot", {"data-collections": [ORDERS], "type": "blocking"}, id="three")
        wait_for_signal(run.lake, "three", SignalState.DONE)
        run.catch_up()
        assert_equal(source, run.lake, ORDERS)
    told = [each for each in LakeHome(settings.lake).signals.notifications.all() if each.signal == "one"]
    assert [each.step for each in told if each.step is not CopyStep.IN_PROGRESS] == [
        CopyStep.STARTED,
        CopyStep.TABLE_COMPLETED,
        CopyStep.COMPLETED,
    ]


def test_a_condition_and_a_surrogate_key_choose_what_is_read_and_in_which_order(
    source: str, settings: ConnectorSettings
) -> None:
    execute(source, "create table parts (id uuid primary key default gen_random_uuid(), number int not null, v text)")
    execute(source, "insert into parts (number, v) select n / 3, 'first' from generate_series(1, 500) n")
    with running(settings, source_of(source)) as run:
        run.catch_up()
        data = {
            "data-collections": ["public.parts"],
            "additional-conditions": [{"data-collection": "public.parts", "filter": "number < 10"}],
            "surrogate-key": "number",
        }
        tailrace.signal(run.lake, "execute-snapshot", data, id="few")
        assert wait_for_signal(run.lake, "few", SignalState.DONE).result == "1 of 1 tables copied"
        tailrace.signal(run.lake, "execute-snapshot", {**data, "additional-conditions": []}, id="all")
        wait_for_signal(run.lake, "all", SignalState.DONE)
        execute(
            source, "update parts set number = 500 - number where number % 7 = 0; delete from parts where number = 3"
        )
        run.catch_up()
        assert_equal(source, run.lake, "public.parts")
    told = [
        each for each in LakeHome(settings.lake).signals.notifications.all() if each.step is CopyStep.TABLE_COMPLETED
    ]
    told = [each for each in told if each.signal is not None]
    assert [(each.signal, each.rows) for each in told] == [("few", 29), ("all", 500)]


def test_the_longest_transaction_that_a_copy_has_open_at_the_source_is_told(
    source: str, settings: ConnectorSettings
) -> None:
    """Postgres's own measure: how old the transaction is when its last row is read."""
    disturbed = DisturbedPostgres(source)
    ages: list[float] = []

    def disturb(table: TableId, what: str, number: int) -> None:
        """One window takes longer than the others."""
        with psycopg.connect(source) as conn:
            if table.name == "orders" and number == 3:
                conn.execute("select pg_sleep(1.5)")
            conn.rollback()
            query = "select max(extract(epoch from clock_timestamp() - xact_start))::float8 from pg_stat_activity"
            found = conn.execute(f"{query} where application_name = 'tailrace' and datname = current_database()")
            ages.append((found.fetchone() or (0.0,))[0])

    with running(replace(settings, window_rows=100), disturbed) as run:
        run.catch_up()
        disturbed.disturbance.begin(disturb)
        tailrace.signal(run.lake, "execute-snapshot", {"data-collections": [ORDERS]}, id="again")
        wait_for_signal(run.lake, "again", SignalState.DONE)
    told = [
        each for each in LakeHome(settings.lake).signals.notifications.all() if each.signal == "again" and each.table
    ]
    assert max(ages) <= told[-1].held_seconds_max < max(ages) + 5
    assert 0 < told[-1].held_seconds <= told[-1].held_seconds_max
    assert max(ages) >= 1.5


def test_what_cannot_be_read_is_rejected_and_a_table_that_is_added_is_taken_in(
    source: str, settings: ConnectorSettings
) -> None:
    with running(settings, source_of(source)) as run:
        run.catch_up()
        with writers(source, LOAD, 1):
            execute(source, "create table added (id int primary key, v text)")
            execute(source, "insert into added select n, 'v' from generate_series(1, 300) n")
            run.wait_for_state("public.added", TableState.LIVE)
        data = {"data-collections": ["public.other"], "additional-condition": "true); drop table added; --"}
        tailrace.signal(run.lake, "execute-snapshot", data, id="bad")
        rejected = wait_for_signal(run.lake, "bad", SignalState.REJECTED)
        assert "condition" in (rejected.result or "")
        data = {"data-collections": ["public.other"], "surrogate-key": "v"}
        tailrace.signal(run.lake, "execute-snapshot", data, id="nullable")
        assert "v" in (wait_for_signal(run.lake, "nullable", SignalState.REJECTED).result or "")
        assert run.connector.tables()[TableId("public", "other")].state is TableState.LIVE
        run.catch_up()
        assert_equal(source, run.lake, "public.added", ORDERS)
