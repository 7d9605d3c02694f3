"""How many connections a copy takes, counted at the server while it runs."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from pyspark.sql import SparkSession
from tests.integration.lake.equality import assert_equal, execute
from tests.running import sync_once

from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

TABLES = ("public.a", "public.b", "public.c")
FILLED = "create table {0} (id int primary key, v text); alter table {0} owner to narrow;"
FILLED += "insert into {0} select n, repeat('x', 200) from generate_series(1, 20000) n;"


@pytest.fixture
def narrow(database: str) -> Iterator[str]:
    """A database whose tables belong to a role that may have three connections."""
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("drop role if exists narrow; create role narrow login replication connection limit 3")
        conn.execute(f"grant create on database {conn.info.dbname} to narrow; grant create on schema public to narrow")
    execute(database, "".join(FILLED.format(table) for table in TABLES))
    yield database.replace("postgres@", "narrow@")
    execute(database, "drop owned by narrow; drop role narrow")


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(tmp_path / "lake", once=True, chunk_bytes_max=1 << 20)


class Watch:
    """The most readers that were there at once, and how many there were in all."""

    def __init__(self, dsn: str) -> None:
        self.most = 0
        self.seen: set[int] = set()
        self._dsn = dsn
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._count, daemon=True)

    def _count(self) -> None:
        readers = "select pid from pg_stat_activity where usename = 'narrow'"
        readers += " and state = 'active' and query like 'copy (%'"
        with psycopg.connect(self._dsn, autocommit=True) as conn:
            while not self._ended.wait(0.001):
                found = {pid for (pid,) in conn.execute(readers)}
                self.most = max(self.most, len(found))
                self.seen |= found


@contextmanager
def watching(dsn: str) -> Iterator[Watch]:
    watch = Watch(dsn)
    watch._thread.start()
    yield watch
    watch._ended.set()
    watch._thread.join()


def test_a_role_with_three_connections_completes_a_copy(
    database: str, narrow: str, settings: ConnectorSettings, spark: SparkSession
) -> None:
    # Looks at the tables that often take the third connection most of the time.
    busy = replace(settings, look_at_tables_seconds=0.0)
    with watching(database) as watch:
        assert set(sync_once(busy, source_of(narrow), spark).values()) == {TableState.LIVE}
    assert_equal(database, settings.lake, *TABLES)
    assert watch.seen


@pytest.mark.proof
def test_no_more_readers_than_are_allowed_read_at_once(
    database: str, narrow: str, settings: ConnectorSettings, spark: SparkSession
) -> None:
    execute(database, "alter role narrow connection limit -1")
    with watching(database) as watch:
        states = sync_once(replace(settings, readers_max=1), source_of(narrow), spark)
    assert set(states.values()) == {TableState.LIVE}
    assert_equal(database, settings.lake, *TABLES)
    assert len(watch.seen) > len(TABLES)
    assert watch.most == 1
