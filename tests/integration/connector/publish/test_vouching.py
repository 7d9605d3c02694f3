"""What a live read waits for, and what it never shows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from tests.integration.lake.equality import execute
from tests.integration.postgres.test_window_points import server_of_its_own, waiting_for_a_standby
from tests.postgres import wait_until
from tests.running import connector_of, running, sync_once

import tailrace
from tailrace.connector.events import Event, TableChanged
from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.position import SourcePosition
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings
from tailrace.source import kinds
from tailrace.source.kinds import source_of
from tailrace.source.postgres.source import PostgresSource

TABLE = "public.t"


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    """What is read is never published: looks alone decide."""
    return ConnectorSettings(tmp_path / "lake", publish_every_seconds=3600, look_at_tables_seconds=3600)


class CountedPostgres(PostgresSource):
    """Counts how often it was asked for its mark."""

    kind = "counted"
    marks = 0

    def mark(self) -> str:
        type(self).marks += 1
        return super().mark()


def shown(lake: Path) -> list[int]:
    return sorted(tailrace.arrow(lake, TABLE).column("id").to_pylist())


def test_a_commit_that_waits_for_a_standby_is_not_shown_and_holds_up_those_after_it(
    settings: ConnectorSettings,
) -> None:
    """The log has it, and the source shows it to no one yet."""
    with server_of_its_own() as server, psycopg.connect(server.dsn(), autocommit=True) as conn:
        conn.execute("create table t (id int primary key); insert into t values (1)")
        kinds.register("counted", f"{__name__}:CountedPostgres")
        with running(settings, CountedPostgres(server.dsn())) as run:
            run.wait_for_state(TABLE, TableState.LIVE)
            with waiting_for_a_standby(conn, server.dsn(), "insert into t values (2)"):
                conn.execute("insert into t values (3)")
                run.wait_for_log()
                assert LogReader(LakeHome(run.lake).log).head.seq == 2
                asked = CountedPostgres.marks
                wait_until(lambda: CountedPostgres.marks >= asked + 3)
                assert shown(run.lake) == [1]
            run.wait_for_live_reads()
            assert shown(run.lake) == [1, 2, 3]


def test_a_commit_is_shown_without_a_publish_and_one_after_a_statement_only_when_it_was_looked_at(
    database: str, settings: ConnectorSettings
) -> None:
    execute(database, "create type mood as enum ('a', 'b'); create table t (id int primary key, m mood default 'a')")
    with running(settings, source_of(database)) as run:
        run.wait_for_state(TABLE, TableState.LIVE)
        for number in range(3):
            execute(database, f"insert into t values ({number})")
            run.wait_for_live_reads()
            assert shown(run.lake) == list(range(number + 1))
        execute(database, "alter type mood rename value 'a' to 'A'; insert into t values (9)")
        run.wait_for_state(TABLE, TableState.LIVE, copy=2)
        assert set(tailrace.arrow(run.lake, TABLE).column("m").to_pylist()) == {"A"}


def test_what_no_look_was_taken_after_is_refused_until_a_connector_has_looked(
    database: str, settings: ConnectorSettings
) -> None:
    """As after a kill: the log is ahead of what was vouched for."""
    execute(database, "create table t (id int primary key)")
    with running(settings, source_of(database)) as run:
        run.wait_for_state(TABLE, TableState.LIVE)
        execute(database, "insert into t values (1)")
        run.wait_for_live_reads()
        execute(database, "insert into t values (2)")
        run.wait_for_live_reads()
    home, reader = LakeHome(settings.lake), LogReader(settings.lake / "_tailrace" / "log")
    last = reader.position_of(2)
    home.runs.vouched.store(reader.position_of(1).ordinal)
    assert shown(settings.lake) == [1]
    with pytest.raises(DefiniteError, match=r"have been looked at up to .* only, not yet up to"):
        tailrace.arrow(settings.lake, TABLE, as_of=last)
    (settings.lake / "_tailrace" / "vouched").write_text("")
    assert shown(settings.lake) == [], "a cut vouches for itself"
    sync_once(replace(settings, once=True), source_of(database))
    assert tailrace.arrow(settings.lake, TABLE, as_of=last).num_rows == 2


def test_live_reads_wait_for_a_source_that_cannot_be_asked_and_stay_right(settings: ConnectorSettings) -> None:
    with server_of_its_own() as server:
        execute(server.dsn(), "create table t (id int primary key); insert into t values (1)")
        with running(settings, source_of(server.dsn())) as run:
            run.wait_for_state(TABLE, TableState.LIVE)
            server.stop()
            assert shown(run.lake) == [1]
            server.start()
            execute(server.dsn(), "insert into t values (2)")
            wait_until(lambda: shown(run.lake) == [1, 2], 60)


class AheadPostgres(PostgresSource):
    """Says that it is further than it is, so that the log does not get there."""

    kind = "ahead"
    ahead = 0

    def now(self) -> SourcePosition:
        position = super().now()
        return replace(position, ordinal=position.ordinal + self.ahead)


def test_a_table_whose_columns_changed_while_it_was_copied_is_in_no_cut_until_it_has_followed(
    database: str, settings: ConnectorSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows may have been read before the change or after it."""
    execute(database, "create table t (id int primary key, v int); create table c (id int primary key)")
    told: list[Event] = []

    def change(event: Event) -> None:
        is_begun = isinstance(event, TableChanged) and event.record.state is TableState.SNAPSHOTTING
        if is_begun and not told:
            told.append(event)
            execute(database, "alter table t rename v to w")
            monkeypatch.setattr(AheadPostgres, "ahead", 1 << 30)

    kinds.register("ahead", f"{__name__}:AheadPostgres")
    connector = connector_of(settings, AheadPostgres(database))
    connector.subscribe(change)
    connector.start()
    home = LakeHome(settings.lake)
    try:
        wait_until(lambda: told and home.cuts.newest(lambda cut: "public.c" in cut.tables))
        assert home.cuts.newest(lambda cut: TABLE in cut.tables) is None
        monkeypatch.setattr(AheadPostgres, "ahead", 0)
        execute(database, "create table e (id int primary key); insert into c values (1)")
        wait_until(lambda: home.cuts.newest(lambda cut: TABLE in cut.tables))
        assert tailrace.arrow(settings.lake, TABLE).column_names == ["id", "w"]
    finally:
        connector.stop()
        connector.wait(60)
