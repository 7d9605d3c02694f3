"""Partitions that come and go between two looks at their table, which leave no trace in its definition."""

from __future__ import annotations

from pathlib import Path

import psycopg
from tests.integration.lake.equality import assert_equal
from tests.running import connector_of, running

from tailrace.connector.connector import Connector
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

MADE = "create table {0}_b partition of {0} for values from (10) to (20); insert into {0} values (11, 'b')"
GONE = {
    "emptied": f"{MADE}; truncate {{0}}_b; insert into {{0}} values (12, 'b')",
    "dropped": f"{MADE}; drop table {{0}}_b",
    "dropped_at_once": f"begin; {MADE}; drop table {{0}}_b; commit",
    "detached": f"{MADE}; alter table {{0}} detach partition {{0}}_b",
    "replaced": f"{MADE}; drop table {{0}}_b; create table {{0}}_b partition of {{0}} for values from (10) to (20)",
    "emptied_twice": "begin; truncate {0}_a; insert into {0} values (4, 'a'); truncate {0}_a; commit",
    "rewritten_and_emptied": "begin; alter table {0}_a set unlogged; alter table {0}_a set logged; "
    "insert into {0} values (4, 'a'); truncate {0}_a; commit",
    "a_subtree": "create table {0}_b partition of {0} for values from (10) to (20) partition by range (id); "
    "create table {0}_bb partition of {0}_b default; insert into {0} values (11, 'b'); drop table {0}_bb",
}
AT_ONCE = {
    "emptied_by_its_maker": f"begin; {MADE}; truncate {{0}}_b; commit",
    "emptied_and_filled": f"begin; {MADE}; truncate {{0}}_b; insert into {{0}} values (12, 'b'); commit",
    "in_a_savepoint": f"begin; insert into other default values; savepoint s; {MADE}; truncate {{0}}_b; "
    "release savepoint s; commit",
    "attached_by_its_maker": "begin; create table {0}_b (like {0} including all); "
    "alter table {0} attach partition {0}_b for values from (10) to (20); insert into {0} values (11, 'b'); "
    "truncate {0}_b; commit",
    "detached_for_a_while": f"begin; {MADE}; alter table {{0}} detach partition {{0}}_b; delete from {{0}}_b; "
    "alter table {0} attach partition {0}_b for values from (10) to (20); commit",
    "a_level_above": "create table {0}_b partition of {0} for values from (10) to (20) partition by range (id); "
    "begin; create table {0}_bb partition of {0}_b default; insert into {0} values (11, 'b'); truncate {0}_b; commit",
    "kept_by_its_maker": f"begin; {MADE}; commit",
}
"""Made and filled in one transaction: what else that did to the partition, nothing tells."""
PASSING = GONE | AT_ONCE
STAYING = {
    "kept": MADE,
    "filled_later": "begin; {}; commit; begin; savepoint s; {}; commit".format(*MADE.split("; ")),
    "truncated_with_another": "truncate other, more; insert into {0} values (4, 'a')",
}


def make(conn: psycopg.Connection) -> None:
    conn.execute("create table other (id serial primary key); create table more (id int primary key)")
    for name in [*PASSING, *STAYING]:
        conn.execute(f"create table {name} (id int primary key, v text) partition by range (id)")
        conn.execute(f"create table {name}_a partition of {name} for values from (0) to (10)")
        conn.execute(f"insert into {name} values (1, 'a'), (2, 'a')")


def play(conn: psycopg.Connection) -> None:
    for name, script in (PASSING | STAYING).items():
        for statement in script.split("; "):
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
    connector = connector_of(ConnectorSettings(tmp_path / "lake", once=True), source_of(database))
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


def test_a_table_that_one_transaction_makes_fills_and_empties_has_what_was_filled_in_last(
    database: str, tmp_path: Path
) -> None:
    source = source_of(database, publication="theirs")
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("create table first (id int primary key)")
        conn.execute("create publication theirs for all tables with (publish_via_partition_root = true)")
        connector = connector_of(ConnectorSettings(tmp_path / "lake", once=True), source)
        _run(connector)
        # As one transaction.
        conn.execute(
            "create table n (id int primary key); insert into n values (1); truncate n; insert into n values (2)"
        )
        _run(connector)
        conn.execute("begin; truncate n; insert into n values (3); truncate n; insert into n values (4); commit")
        _run(connector)
    assert_equal(database, tmp_path / "lake", "public.n")
    assert connector.tables()[TableId("public", "n")].state is TableState.LIVE


def _passing(connector: Connector) -> list[TableRecord]:
    found = connector.tables()
    return [found[TableId("public", name)] for name in PASSING]


def _run(connector: Connector) -> None:
    connector.start()
    assert connector.wait(200)
