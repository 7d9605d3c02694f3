"""Keys of every comparable type, through windows to the lake, while rows come, change and go."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from tests.doors.disturbed import DisturbedPostgres
from tests.integration.lake.equality import assert_equal, execute
from tests.integration.postgres.test_window_points import run as run_program
from tests.integration.postgres.test_window_points import server_of_its_own
from tests.postgres import wait_until
from tests.running import running

import tailrace
from tailrace.connector.signals.sender import lake_signals
from tailrace.lake.home import LakeHome
from tailrace.model.signal import SignalState
from tailrace.model.table import TableId
from tailrace.settings import ConnectorSettings, TaskSizes

ROWS = 40
KEYS = {
    "by_uuid": ("uuid", "md5(n::text)::uuid"),
    "by_enum": ("mood", "(enum_range(null::mood))[n]"),
    "by_numeric": (
        "numeric",
        "case n when 7 then 'NaN' when 8 then 'Infinity' else (n::numeric / 7)::text end::numeric",
    ),
    "by_text": ('text collate "C"', "case n % 3 when 0 then 'Ä' when 1 then 'a' else 'Z' end || n"),
    "by_words": ("citext", "case n % 2 when 0 then 'word ' else 'WORD ' end || n"),
    "by_time": (
        "timestamptz",
        "case n when 5 then 'infinity' when 6 then '-infinity' else '2026-01-01' end::timestamptz + n * interval '1 h'",
    ),
    "by_bytes": ("bytea", "decode(md5(n::text), 'hex')"),
}
AS_TEXT = ["public.by_numeric.id", "public.by_time.id"]
"""What a column of the lake cannot hold is no key there."""
CHANGES = """
update {0} set v = 'changed' where n % 5 = 0;
delete from {0} where n % 7 = 3;
insert into {0} select {1}, n, 'new' from generate_series({2} + 1, {2} + 5) n on conflict do nothing;
"""


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(
        tmp_path / "lake",
        publish_every_seconds=0.1,
        look_at_tables_seconds=0.5,
        window_rows=6,
        readers_max=1,
        sizes=TaskSizes(window_growth_max=1.0, window_seconds=600.0),
    )


def test_keys_of_every_comparable_type_are_copied_by_windows_while_they_change(
    database: str, settings: ConnectorSettings
) -> None:
    keys = dict(KEYS)
    moods = ", ".join(f"'mood {n}'" for n in range(ROWS + 5, 0, -1))
    execute(database, f"create type mood as enum ({moods})")
    with psycopg.connect(database) as conn:
        if not conn.execute("select from pg_available_extensions where name = 'citext'").fetchone():
            del keys["by_words"]
    if "by_words" in keys:
        execute(database, "create extension citext")
    for table, (type_, value) in keys.items():
        execute(database, f"create table {table} (id {type_} primary key, n int, v text)")
        execute(database, f"insert into {table} select {value}, n, 'v' from generate_series(1, {ROWS}) n")
    source = DisturbedPostgres(database, as_text=AS_TEXT)
    names = [f"public.{table}" for table in keys]

    def disturb(table: TableId, what: str, number: int) -> None:
        if number == 3:
            execute(database, CHANGES.format(table.name, keys[table.name][1], ROWS))

    with running(settings, source) as run:
        run.catch_up()
        source.disturbance.begin(disturb)
        tailrace.signal(run.lake, "execute-snapshot", {"data-collections": names}, id="again")
        wait_until(lambda: states(run.lake)["again"] in (SignalState.DONE, SignalState.FAILED), 120)
        assert states(run.lake)["again"] is SignalState.DONE
        run.catch_up()
        assert_equal(database, run.lake, *names)


def test_after_four_thousand_million_transactions_a_copy_by_windows_is_exact(settings: ConnectorSettings) -> None:
    """The stream has the last 32 bits of their numbers alone."""
    with server_of_its_own() as server:
        server.stop()
        run_program(server, "pg_resetwal", "-e", "1", "-D", str(server.data_dir))
        server.start()
        execute(server.dsn(), "create table t (id int primary key, n int)")
        execute(server.dsn(), f"insert into t select n, 0 from generate_series(1, {ROWS}) n")
        source = DisturbedPostgres(server.dsn())
        with running(settings, source) as run, psycopg.connect(server.dsn()) as older:
            run.catch_up()
            older.execute("select txid_current()")

            def disturb(table: TableId, what: str, number: int) -> None:
                execute(server.dsn(), f"update t set n = n + 1 where id % 4 = {number % 4}")
                if number == 4:
                    older.execute("update t set n = n + 100 where id % 5 = 0")
                    older.commit()

            source.disturbance.begin(disturb)
            tailrace.signal(run.lake, "execute-snapshot", {"data-collections": ["public.t"]}, id="again")
            wait_until(lambda: states(run.lake).get("again") is SignalState.DONE, 120)
            run.catch_up()
            assert_equal(server.dsn(), run.lake, "public.t")


def states(lake: Path) -> dict[str, SignalState]:
    return {each.signal.id: each.state for each in lake_signals(LakeHome(lake))}
