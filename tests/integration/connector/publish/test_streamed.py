"""Transactions that are logged while they are open: the lake is the source before, between and after their commits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from demo.embedded import EmbeddedPostgres
from tests.integration.lake.equality import assert_equal
from tests.postgres import streaming_at_once
from tests.running import sync_once

from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of
from tailrace.source.postgres.source import PostgresSource

TABLES = ["public.a", "public.b"]
LIVE = dict.fromkeys(TABLES, TableState.LIVE)


def test_the_lake_equals_the_source_while_a_streamed_transaction_changes_rows_and_definitions(
    database: str, tmp_path: Path
) -> None:
    source = source_of(streaming_at_once(database))
    settings = ConnectorSettings(tmp_path / "lake", once=True)
    with psycopg.connect(database, autocommit=True) as conn, psycopg.connect(database) as other:
        conn.execute("create table a (id int primary key, v text); create table b (id int primary key, v text)")
        conn.execute("insert into a select n, 'first' from generate_series(1, 50) n; insert into b select * from a")
        assert sync_once(settings, source) == LIVE

        other.execute("update a set v = 'open' where id % 2 = 0; delete from a where id = 1")
        other.execute("savepoint s; truncate a; insert into a values (7, 'lost'); rollback to s")
        conn.execute("update b set v = 'meanwhile' where id < 10")
        assert sync_once(settings, source) == LIVE
        assert_equal(database, settings.lake, *TABLES)

        other.execute("alter table a add column more int; insert into a values (100, 'new shape', 1)")
        other.execute("savepoint s; alter table a add column ghost int; insert into a values (101, 'lost', 1, 1)")
        other.execute("rollback to s")
        other.execute("insert into a values (102, 'kept', 2)")
        other.commit()
        conn.execute("insert into a values (103, 'after', 3); delete from b where id = 2")
        assert sync_once(settings, source) == LIVE
        assert_equal(database, settings.lake, *TABLES)

        other.execute("savepoint s; alter table b add column ghost int; insert into b values (101, 'lost', 1)")
        other.execute("rollback to s; update a set v = 'last' where id = 102")
        other.commit()
        assert sync_once(settings, source) == LIVE
        assert_equal(database, settings.lake, *TABLES)


PARTED = """
create table beside (id int primary key);
create table parted (id int primary key, v text) partition by range (id);
create table parted_a partition of parted for values from (0) to (10); insert into parted values (1, 'first');
"""
MADE_AND_EMPTIED = """
create table parted_b partition of parted for values from (10) to (20);
insert into parted values (11, 'never'); truncate parted_b; insert into parted values (12, 'kept')
"""


def test_a_partition_that_a_streamed_transaction_makes_and_empties_leaves_none_of_its_rows(
    database: str, tmp_path: Path
) -> None:
    source = source_of(streaming_at_once(database))
    settings = ConnectorSettings(tmp_path / "lake", once=True)
    with psycopg.connect(database, autocommit=True) as conn, psycopg.connect(database) as other:
        conn.execute(PARTED)
        sync_once(settings, source)
        other.execute(f"savepoint s; {MADE_AND_EMPTIED}; release savepoint s")
        conn.execute("insert into beside values (1)")
        sync_once(settings, source)
        assert_equal(database, settings.lake, "public.beside")
        other.commit()
        sync_once(settings, source)
        assert_equal(database, settings.lake, "public.parted")


@pytest.fixture(scope="module")
def two_phase() -> Iterator[EmbeddedPostgres]:
    """A server that lets transactions be prepared."""
    settings = {"max_prepared_transactions": "5"}
    with (
        TemporaryDirectory(prefix="tailrace-") as folder,
        EmbeddedPostgres(Path(folder) / "data", settings=settings) as server,
    ):
        yield server


def prepare(conn: psycopg.Connection, gid: str, statements: str) -> None:
    conn.execute(f"begin; {statements}; prepare transaction '{gid}'")


@pytest.mark.parametrize("at_once", [False, True], ids=["whole", "streamed"])
def test_the_lake_equals_the_source_before_and_after_prepared_transactions_end(
    two_phase: EmbeddedPostgres, tmp_path: Path, at_once: bool
) -> None:
    database = two_phase.create_database(f"prepared_{at_once}".lower())
    source = PostgresSource(streaming_at_once(database) if at_once else database, stream={"two_phase": True})
    settings = ConnectorSettings(tmp_path / "lake", once=True)
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("create table a (id int primary key, v text); create table b (id int primary key, v text)")
        conn.execute("insert into a select n, 'first' from generate_series(1, 50) n; insert into b select * from a")
        assert sync_once(settings, source) == LIVE

        prepare(conn, "kept", "update a set v = 'prepared' where id < 10; delete from b where id = 1")
        prepare(conn, "lost", "update a set v = 'never' where id > 40; delete from b where id = 2")
        conn.execute("insert into a values (60, 'meanwhile')")
        assert sync_once(settings, source) == LIVE
        assert_equal(database, settings.lake, "public.a")

        conn.execute("commit prepared 'kept'")
        conn.execute("rollback prepared 'lost'")
        assert sync_once(settings, source) == LIVE
        assert_equal(database, settings.lake, *TABLES)

        prepare(conn, "shape", "alter table a add column more int; insert into a values (70, 'new shape', 1)")
        conn.execute("update b set v = 'meanwhile' where id < 5")
        assert sync_once(settings, source) == LIVE
        assert_equal(database, settings.lake, "public.b")
        conn.execute("commit prepared 'shape'")
        conn.execute("insert into a values (71, 'after', 2); update a set more = 3 where id = 1")
        assert sync_once(settings, source) == LIVE
        assert_equal(database, settings.lake, *TABLES)


@pytest.mark.parametrize("is_awaited", [False, True], ids=["late", "at once"])
def test_a_partition_that_a_prepared_transaction_makes_and_empties_leaves_none_of_its_rows(
    two_phase: EmbeddedPostgres, tmp_path: Path, is_awaited: bool
) -> None:
    database = two_phase.create_database(f"parted_{is_awaited}".lower())
    source = PostgresSource(database, stream={"two_phase": True})
    settings = ConnectorSettings(tmp_path / "lake", once=True)
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(PARTED)
        sync_once(settings, source)
        prepare(conn, "made", MADE_AND_EMPTIED)
        if is_awaited:
            sync_once(settings, source)
        conn.execute("commit prepared 'made'")
        sync_once(settings, source)
        assert_equal(database, settings.lake, "public.parted")
