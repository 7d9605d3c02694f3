"""Partitions that come and go between two looks at their table, which leave no trace in its definition."""

from __future__ import annotations

from pathlib import Path

import psycopg
from tests.integration.lake.equality import assert_equal
from tests.running import running

from tailrace.connector.connector import Connector
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

MADE = "create table {0}_b partition of {0} for values from (10) to (20); insert into {0} values (11, 'b')"
PASSING = {
    "emptied": f"{MADE}; truncate {{0}}_b; insert into {{0}} values (12, 'b')",
    "dropped": f"{MADE}; drop table {{0}}_b",
    "dropped_at_once": f"begin; {MADE}; drop table {{0}}_b; commit",
    "detached": f"{MADE}; alter table {{0}} detach partition {{0}}_b",
    "replaced": f"{MADE}; drop table {{0}}_b; create table {{0}}_b partition of {{0}} for values from (10) to (20)",
    "a_subtree": "create table {0}_b partition of {0} for values from (10) to (20) partition by range (id); "
    "create table {0}_bb partition of {0}_b default; insert into {0} values (11, 'b'); drop table {0}_bb",
}
STAYING = {
    "kept": MADE,
    "kept_at_once": f"begin; {MADE}; commit",
    "truncated_with_another": "truncate other, {0}_more; insert into {0} values (4, 'a')",
}


def make(conn: psycopg.Connection) -> None:
    conn.execute("create table other (id int primary key)")
    for name in [*PASSING, *STAYING]:
        conn.execute(f"create table {name} (id int primary key, v text) partition by range (id)")
        conn.execute(f"create table {name}_a partition of {name} for values from (0) to (10)")
        conn.execute(f"insert into {name} values (1, 'a'), (2, 'a'); create table {name}_more (id int primary key)")


def play(conn: psycopg.Connection) -> None:
    for name, script in (PASSING | STAYING).items():
        for statement in [script] if script.startswith("begin") else script.split("; "):
            conn.execute(statement.format(name))
        conn.execute(f"insert into {name} values (3, 'after')")


def assert_right(database: str, lake: Path, connector: Connector) -> None:
    assert_equal(database, lake, *(f"public.{name}" for name in [*PASSING, *STAYING]))
    copies = {table.name: record.copy for table, record in connector.tables().items()}
    assert {name for name in PASSING if copies[name] < 2} == set()
    assert {name for name in STAYING if copies[name] > 1} == set()
    assert connector.tables()[TableId("public", "dropped")].copy == 2


def test_a_partition_that_comes_and_goes_while_nothing_runs_leaves_none_of_its_rows(
    database: str, tmp_path: Path
) -> None:
    connector = Connector(ConnectorSettings(tmp_path / "lake", once=True), source_of(database))
    with psycopg.connect(database, autocommit=True) as conn:
        make(conn)
        _run(connector)
        play(conn)
        _run(connector)
        assert_right(database, tmp_path / "lake", connector)
        for name in PASSING:
            conn.execute(f"insert into {name} values (5, 'later')")
        _run(connector)
    assert_right(database, tmp_path / "lake", connector)


def test_a_partition_that_comes_and_goes_while_it_streams_leaves_none_of_its_rows(
    database: str, tmp_path: Path
) -> None:
    # Looks are taken when something is published alone.
    settings = ConnectorSettings(tmp_path / "lake", publish_every_seconds=1, look_at_tables_seconds=3600)
    with psycopg.connect(database, autocommit=True) as conn:
        make(conn)
        with running(settings, source_of(database)) as run:
            run.catch_up()
            play(conn)
            run.catch_up()
            run.wait_for(
                lambda: (
                    all(record.copy > 1 and record.state is TableState.LIVE for record in _passing(run.connector))
                    or None
                )
            )
            run.catch_up()
            assert_equal(database, settings.lake, *(f"public.{name}" for name in [*PASSING, *STAYING]))


def _passing(connector: Connector) -> list[TableRecord]:
    found = connector.tables()
    return [found[TableId("public", name)] for name in PASSING]


def _run(connector: Connector) -> None:
    connector.start()
    assert connector.wait(200)
