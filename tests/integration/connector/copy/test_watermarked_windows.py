"""Copies by windows that write watermarks: as exact as without."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from tests.doors.disturbed import DisturbedPostgres
from tests.integration.lake.equality import assert_equal, execute
from tests.integration.postgres.test_window_points import server_of_its_own, waiting_for_a_standby
from tests.load import Load, writers
from tests.running import running

import tailrace
from tailrace.lake.home import LakeHome
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings, TaskSizes, Watermarking
from tailrace.source.kinds import source_of

SIGNALS = "public.signals"
TABLE = "create table signals (id varchar(64) primary key, type varchar(32) not null, data text)"
WRITING = [Watermarking.INSERT_INSERT, Watermarking.INSERT_DELETE]
ORDERS = "public.orders"
LOAD = Load(
    (
        "update orders set n = n + 1 where id = %(key)s",
        "delete from orders where id = %(key)s",
        "insert into orders values (%(key)s, 0, repeat(md5(random()::text), 200)) on conflict do nothing",
        "update orders set id = %(other)s where id = %(key)s and not exists (select from orders where id = %(other)s)",
    ),
    keys_max=600,
)
SETUP = """
create table orders (id int primary key, n int, large text);
alter table orders alter large set storage external;
insert into orders select n, 0, repeat(md5(n::text), 200) from generate_series(1, 500) n;
"""
LEFT = "select type, count(*) from signals group by type order by type desc"


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(
        tmp_path / "lake",
        publish_every_seconds=0.1,
        look_at_tables_seconds=0.2,
        window_rows=5,
        signal_table=SIGNALS,
        sizes=TaskSizes(window_growth_max=1.0, window_seconds=600.0),
    )


@pytest.mark.parametrize("how", WRITING)
def test_a_table_that_is_copied_under_load_equals_the_source_and_its_windows_are_closed(
    database: str, settings: ConnectorSettings, how: Watermarking
) -> None:
    execute(database, TABLE)
    execute(database, SETUP)
    settings = replace(settings, window_rows=50, watermarking=how)
    with running(settings, source_of(database, signal_table=SIGNALS)) as run:
        run.catch_up()
        with writers(database, LOAD):
            run.connector.resync(TableId.parse(ORDERS))
            run.wait_for_state(ORDERS, TableState.LIVE, copy=2)
        run.catch_up()
        assert_equal(database, settings.lake, ORDERS)
    with psycopg.connect(database) as conn:
        left = dict(conn.execute(LEFT).fetchall())
    if how is Watermarking.INSERT_DELETE:
        assert left == {}
    else:
        assert left["snapshot-window-open"] == left["snapshot-window-close"] > 2
    assert LakeHome(settings.lake).signals.book.open_records() == []


@pytest.mark.parametrize("how", WRITING)
def test_a_commit_that_is_logged_before_the_window_was_opened_and_was_not_shown_is_in_the_lake(
    settings: ConnectorSettings, how: Watermarking
) -> None:
    """It waits for a standby. Between the watermarks, the log has nothing."""
    with server_of_its_own() as server, psycopg.connect(server.dsn(), autocommit=True) as conn, ExitStack() as waiting:
        conn.execute(TABLE)
        conn.execute("create table t (id int primary key, n int, large text)")
        conn.execute("alter table t alter large set storage external")
        conn.execute("insert into t select n, 0, repeat(md5(n::text), 200) from generate_series(1, 40) n")
        source = DisturbedPostgres(server.dsn(), signal_table=SIGNALS, watermarks=how)
        with running(replace(settings, watermarking=how, readers_max=1), source) as run:
            run.catch_up()

            def disturb(table: TableId, what: str, number: int) -> None:
                if number == 1:
                    statement = "update t set n = 1 where id = 38"
                    waiting.enter_context(waiting_for_a_standby(conn, server.dsn(), statement))
                    run.wait_for_log()

            source.disturbance.begin(disturb)
            run.connector.resync(TableId("public", "t"))
            run.wait_for_state("public.t", TableState.LIVE, copy=2)
            assert conn.execute("select n from t where id = 38").fetchone() == (0,)
            run.catch_up()
            found = {row["id"]: row["n"] for row in tailrace.arrow(run.lake, "public.t").to_pylist()}
            assert found[38] == 1
            waiting.close()
            assert_equal(server.dsn(), run.lake, "public.t")
