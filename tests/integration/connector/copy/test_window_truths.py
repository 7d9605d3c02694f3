"""What holds of a copy by windows on a real Postgres, whatever happens while it is made."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from tests.doors.disturbed import DisturbedPostgres
from tests.integration.lake.equality import assert_equal, execute
from tests.integration.postgres.test_window_points import server_of_its_own, waiting_for_a_standby
from tests.postgres import wait_until
from tests.running import Running, running, sync_once

import tailrace
from tailrace.connector.signals.sender import lake_signals
from tailrace.lake.formats import format_named
from tailrace.lake.home import LakeHome
from tailrace.model.signal import SignalState
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.read.duckdb import connect
from tailrace.settings import ConnectorSettings, SnapshotMode, TaskSizes

LARGE = "repeat(md5({0}::text), 200)"
WAIT_SECONDS = 60


WRITERS = 8
PAUSE_SECONDS = 0.01
"""Between two rounds of a writer: the others need the machine too."""


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


def signalled(run: Running, *ids: str) -> set[SignalState]:
    return {each.state for each in lake_signals(LakeHome(run.lake)) if each.signal.id in ids}


def copied_again(run: Running, *tables: str, id_: str = "again") -> None:
    """The tables are copied by windows, to the end."""
    tailrace.signal(run.lake, "execute-snapshot", {"data-collections": list(tables)}, id=id_)
    wait_until(lambda: signalled(run, id_) & {SignalState.DONE, SignalState.FAILED}, WAIT_SECONDS)


def test_a_commit_that_waits_for_a_standby_is_in_the_lake_although_its_row_was_read_without_it(
    settings: ConnectorSettings,
) -> None:
    """Its change was logged before the window in which its row was read."""
    with server_of_its_own() as server, psycopg.connect(server.dsn(), autocommit=True) as conn, ExitStack() as waiting:
        conn.execute("create table t (id int primary key, n int)")
        conn.execute("insert into t select n, 0 from generate_series(1, 40) n")
        source = DisturbedPostgres(server.dsn())
        with running(settings, source) as run:
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
            assert (38, 1) in [(row["id"], row["n"]) for row in tailrace.arrow(run.lake, "public.t").to_pylist()]
            waiting.close()
            assert_equal(server.dsn(), run.lake, "public.t")


def test_large_values_that_a_change_leaves_out_are_kept_on_both_sides_of_the_cursor(
    database: str, settings: ConnectorSettings
) -> None:
    execute(database, "create table t (id int primary key, note text, large text)")
    execute(database, "alter table t alter large set storage external")
    execute(database, f"insert into t select n, 'first', {LARGE.format('n')} from generate_series(1, 60) n")
    source = DisturbedPostgres(database)
    with running(settings, source) as run:
        run.catch_up()

        def disturb(table: TableId, what: str, number: int) -> None:
            """After the rows up to 30 were read: the window is open, and its rows are not in the lake yet."""
            if number == 6:
                execute(
                    database,
                    "update t set note = 'inside' where id in (26, 27); update t set note = 'done' where id = 3;"
                    "update t set note = 'later' where id = 50; update t set id = -id where id in (1, 28, 55);"
                    "update t set id = 28 where id = 57; update t set id = 1000 where id = 2",
                )
            if number == 8:
                execute(database, "update t set id = 2 where id = 58; update t set note = 'moved twice' where id = 2")

        source.disturbance.begin(disturb)
        copied_again(run, "public.t")
        assert signalled(run, "again") == {SignalState.DONE}
        run.catch_up()
        assert_equal(database, run.lake, "public.t")


def count_up(dsn: str, seed: int, stopping: threading.Event) -> None:
    """Adds one to any row, moves through rows that come and go."""
    chance = random.Random(seed)
    with psycopg.connect(dsn, autocommit=True) as conn:
        while not stopping.wait(PAUSE_SECONDS):
            key = chance.randint(1, 200)
            conn.execute("update counters set n = n + 1 where id = %s", [key])
            conn.execute("insert into counters values (%s, 0) on conflict do nothing", [1000 + key])
            conn.execute("delete from counters where id = %s", [1000 + chance.randint(1, 200)])


@contextmanager
def counting(dsn: str) -> Iterator[None]:
    stopping = threading.Event()
    threads = [threading.Thread(target=count_up, args=(dsn, seed, stopping)) for seed in range(WRITERS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join()


def versions(lake: Path, table: TableId, copy: int) -> Iterator[dict[int, int]]:
    """The rows of every version of one copy."""
    stored = format_named("delta").table(LakeHome(lake).place_of(table))
    newest = stored.version()
    assert newest is not None
    with connect(is_private=True) as connection:
        for number in range(newest.number + 1):
            version = stored.version(number)
            if version is None or version.stamp is None or version.stamp.copy != copy:
                continue
            scan = stored.scan(number)
            if scan.extension:
                connection.execute(f"load '{scan.extension}'")
            yield dict(connection.sql(f"select id, n from {scan.sql}").fetchall())


def test_no_row_of_a_growing_table_ever_goes_back_in_time(database: str, settings: ConnectorSettings) -> None:
    execute(database, "create table counters (id int primary key, n int)")
    execute(database, "insert into counters select n, 0 from generate_series(1, 200) n")
    table = TableId("public", "counters")
    with running(settings, DisturbedPostgres(database)) as run:
        run.catch_up()
        with counting(database):
            copied_again(run, "public.counters")
        run.catch_up()
        assert_equal(database, run.lake, "public.counters")
    seen: dict[int, int] = {}
    counted = 0
    for rows in versions(settings.lake, table, copy=2):
        counted += 1
        assert {key for key in seen if key <= 1000} <= set(rows), "a row is gone that was never deleted"
        back = {key: (seen[key], n) for key, n in rows.items() if key <= 1000 and n < seen.get(key, 0)}
        assert back == {}
        seen |= rows
    assert counted > 20
    assert max(seen.values()) > 0


CHANGES = {
    "emptied": "truncate {0}; insert into {0} values (1000, 'after')",
    "emptied_and_refilled": "truncate {0}; insert into {0} select n, 'again' from generate_series(1, 60) n",
    "widened": "alter table {0} add column more int default 7; update {0} set more = 8 where id = 3",
    "renamed": "alter table {0} rename column v to w; update {0} set w = 'x' where id in (3, 33)",
    "narrowed": "alter table {0} drop column v; delete from {0} where id in (3, 33)",
    "retyped": "alter table {0} alter id type bigint; update {0} set v = 'x' where id in (3, 33)",
    "rewritten": "alter table {0} alter v type text using v || '!'",
    "replaced": "drop table {0}; create table {0} (id int primary key, v text); insert into {0} values (7, 'new')",
    "parted": "create table {0}_b partition of {0} for values from (100) to (200); "
    "insert into {0} values (150, 'never'); truncate {0}_b",
    "gone": "drop table {0}",
    "filtered": "alter publication {1} set table {0} where (id > 20)",
    "unsent": "alter publication {1} drop table {0}; update {0} set v = 'unseen'",
}


def test_whatever_is_done_to_tables_while_they_grow_they_equal_the_source(
    database: str, settings: ConnectorSettings
) -> None:
    for name in CHANGES:
        parts = f" partition by range (id); create table {name}_a partition of {name} for values from (0) to (100)"
        execute(database, f"create table {name} (id int primary key, v text){parts if name == 'parted' else ''}")
        execute(database, f"insert into {name} select n, 'first' from generate_series(1, 40) n")
    source = DisturbedPostgres(database)
    with running(settings, source) as run:
        run.catch_up()
        with psycopg.connect(database) as conn:
            (publication,) = conn.execute("select pubname from pg_publication").fetchone() or ("",)

        def disturb(table: TableId, what: str, number: int) -> None:
            if number == 3:
                execute(database, CHANGES[table.name].format(table.name, publication))

        source.disturbance.begin(disturb)
        copied_again(run, r"public\..*")
        run.wait_for_state("public.gone", TableState.ERRORED)
        run.wait_for_state("public.filtered", TableState.ERRORED)
        execute(database, f"alter publication {publication} drop table filtered")
        left = [name for name in CHANGES if name != "gone"]
        wait_until(lambda: all(states(run)[name] is TableState.LIVE for name in left), WAIT_SECONDS)
        run.catch_up()
        assert_equal(database, run.lake, *(f"public.{name}" for name in left))


def states(run: Running) -> dict[str, TableState]:
    return {table.name: record.state for table, record in run.connector.tables().items()}


def test_a_server_that_restarts_in_the_middle_of_a_copy_makes_no_difference(settings: ConnectorSettings) -> None:
    with server_of_its_own() as server:
        execute(server.dsn(), "create table t (id int primary key, v text)")
        execute(server.dsn(), "insert into t select n, 'first' from generate_series(1, 40) n")
        source = DisturbedPostgres(server.dsn())
        with running(settings, source) as run:
            run.catch_up()

            reached, done = threading.Event(), threading.Event()

            def disturb(table: TableId, what: str, number: int) -> None:
                if number == 3:
                    reached.set()
                    done.wait(WAIT_SECONDS)

            source.disturbance.begin(disturb)
            tailrace.signal(run.lake, "execute-snapshot", {"data-collections": ["public.t"]}, id="again")
            assert reached.wait(WAIT_SECONDS)
            # The server ends with the thread that started it.
            server.stop()
            server.start()
            execute(server.dsn(), "update t set v = 'after' where id % 7 = 0")
            done.set()
            wait_until(lambda: signalled(run, "again") & {SignalState.DONE, SignalState.FAILED}, WAIT_SECONDS)
            assert signalled(run, "again") == {SignalState.DONE}
            run.catch_up()
            assert_equal(server.dsn(), run.lake, "public.t")


ODD = r"""
create table nothing (id int primary key, v text);
create table one (id int primary key, v text);
insert into one values (1, 'v');
create table odd (id text primary key, v text);
insert into odd values ('', 'empty'), (' ', 'space'), ('a''b', 'quote'), ('a"b', 'quotes'), (E'a\\b', 'backslash'),
  (E'a\nb', 'line'), (E'a\tb', 'tab'), ('{a,b}', 'braces'), ('%s', 'percent'), (E'\u00e9', 'e'), (E'e\u0301', 'two'),
  (E'\U0001F600', 'face'), ('null', 'word'), ('NULL', 'words'), (E'\\N', 'copy'), (E'\x01', 'control'), ('é ', 'z'),
  (repeat('x', 900), 'long'), ('Z', 'upper'), ('z', 'lower'), ('-', 'dash'), ('ß', 's'), (E'a\r\nb', 'lines');
create table pairs (a text collate "POSIX", b numeric, v text, primary key (b, a));
insert into pairs select chr(65 + n % 30), (n / 3)::numeric / 7, 'v' from generate_series(1, 80) n;
create table parts (id int, day date, v text, primary key (day, id)) partition by range (day);
create table parts_1 partition of parts for values from ('2026-01-01') to ('2026-02-01');
create table parts_2 partition of parts for values from ('2026-02-01') to ('2026-03-01') partition by hash (id);
create table parts_2a partition of parts_2 for values with (modulus 2, remainder 0);
create table parts_2b partition of parts_2 for values with (modulus 2, remainder 1);
insert into parts select n, date '2026-01-20' + n % 30, 'v' from generate_series(1, 90) n;
"""
ODD_TABLES = ("public.nothing", "public.one", "public.odd", "public.pairs", "public.parts")


@pytest.mark.parametrize("chunk_rows", [pytest.param(1, marks=pytest.mark.proof), 7])
def test_odd_keys_partitions_and_tables_with_next_to_nothing_are_copied_by_windows(
    database: str, settings: ConnectorSettings, chunk_rows: int
) -> None:
    execute(database, ODD)
    settings = replace(settings, window_rows=chunk_rows)
    once = replace(settings, snapshot_mode=SnapshotMode.INCREMENTAL, once=True)
    assert set(sync_once(once, DisturbedPostgres(database)).values()) == {TableState.LIVE}
    assert_equal(database, settings.lake, *ODD_TABLES)
    source = DisturbedPostgres(database)
    with running(settings, source) as run:

        def disturb(table: TableId, what: str, number: int) -> None:
            if table.name == "parts" and number == 2:
                execute(database, "update parts set day = day + 3, v = 'moved' where day < '2026-02-10' and id % 2 = 0")
                execute(database, "truncate parts_2a; update odd set id = id || '!' where v in ('quote', 'space')")
                execute(database, "insert into nothing values (1, 'v'); delete from one")

        source.disturbance.begin(disturb)
        copied_again(run, r"public\..*")
        assert signalled(run, "again") == {SignalState.DONE}
        wait_until(lambda: set(states(run).values()) == {TableState.LIVE}, WAIT_SECONDS)
        run.catch_up()
        assert_equal(database, run.lake, *ODD_TABLES)


def test_a_paused_copy_stays_paused_in_the_next_run_and_continues_when_it_is_resumed(
    database: str, settings: ConnectorSettings
) -> None:
    execute(database, "create table t (id int primary key, v text)")
    execute(database, "insert into t select n, 'first' from generate_series(1, 40) n")
    source = DisturbedPostgres(database)
    table = TableId("public", "t")
    with running(settings, source) as run:
        run.catch_up()

        def disturb(table: TableId, what: str, number: int) -> None:
            if number == 3:
                tailrace.signal(run.lake, "pause-snapshot", id="pause")
                wait_until(lambda: signalled(run, "again") == {SignalState.PAUSED}, WAIT_SECONDS)

        source.disturbance.begin(disturb)
        tailrace.signal(run.lake, "execute-snapshot", {"data-collections": ["public.t"]}, id="again")
        wait_until(lambda: signalled(run, "again") == {SignalState.PAUSED}, WAIT_SECONDS)
    read = source.disturbance.done[table, "read"]
    assert read < 8
    sync_once(replace(settings, once=True), DisturbedPostgres(database))
    execute(database, "update t set v = 'paused' where id % 3 = 0")
    again = DisturbedPostgres(database)
    with running(settings, again) as run:
        run.wait_for_log()
        assert signalled(run, "again") == {SignalState.PAUSED}
        tailrace.signal(run.lake, "resume-snapshot", id="resume")
        wait_until(lambda: signalled(run, "again") == {SignalState.DONE}, WAIT_SECONDS)
        run.catch_up()
        assert_equal(database, run.lake, "public.t")
    assert again.disturbance.done[table, "read"] <= 8 - read + 2, "it continued"


@pytest.mark.proof
def test_a_log_at_its_quota_gets_room_from_tables_that_grow(database: str, settings: ConnectorSettings) -> None:
    """It keeps what follows the beginning of the copy; the window waits for what has no room before that goes."""
    execute(database, "create table t (id int primary key, v text); create table large (id int primary key, v text)")
    execute(database, "insert into t select n, 'first' from generate_series(1, 40) n; insert into large values (1, '')")
    settings = replace(settings, log_keep_seconds=0.0, log_quota_bytes=8 << 20, log_segment_bytes_max=1 << 20)
    source = DisturbedPostgres(database)
    with running(settings, source) as run:
        run.catch_up()

        def disturb(table: TableId, what: str, number: int) -> None:
            if number == 1:
                with psycopg.connect(database, autocommit=True) as conn:
                    for _ in range(40):
                        conn.execute("update large set v = repeat(md5(clock_timestamp()::text), 12500)")

        source.disturbance.begin(disturb)
        copied_again(run, "public.t")
        assert signalled(run, "again") == {SignalState.DONE}
        run.catch_up()
        assert_equal(database, run.lake, "public.t", "public.large")
