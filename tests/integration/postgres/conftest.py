"""A database of the server, emptied between tests."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from demo.embedded import EmbeddedPostgres

from tailrace.source.postgres.server.connection import connect
from tailrace.source.postgres.source import PostgresSource


@pytest.fixture(scope="session")
def server(postgres: EmbeddedPostgres) -> EmbeddedPostgres:
    """What these tests call the server that all share."""
    return postgres


@pytest.fixture
def dsn(server: EmbeddedPostgres) -> Iterator[str]:
    """An empty database. It is emptied and used again, which takes a tenth of the time of a new one."""
    address = server.create_database("source")
    yield address
    with psycopg.connect(address, autocommit=True) as cleaner:
        empty(cleaner)


def empty(conn: psycopg.Connection) -> None:
    """Remove everything from a database: connections, slots, publications, schemas."""
    here = "datname = current_database() and pid <> pg_backend_pid()"
    conn.execute(f"select pg_terminate_backend(pid, 5000) from pg_stat_activity where {here}")
    conn.execute(
        "select pg_drop_replication_slot(slot_name) from pg_replication_slots where database = current_catalog"
    )
    leftovers = [
        *conn.execute("select format('drop publication %I', pubname) from pg_publication"),
        *conn.execute(
            "select format('drop schema %I cascade', nspname) from pg_namespace "
            "where nspname !~ '^pg_' and nspname <> 'information_schema'"
        ),
    ]
    for (statement,) in leftovers:
        conn.execute(statement)
    conn.execute("create schema public; grant usage on schema public to public")


@pytest.fixture
def conn(dsn: str) -> Iterator[psycopg.Connection]:
    with connect(dsn) as connection:
        yield connection


@pytest.fixture
def source(dsn: str) -> PostgresSource:
    return PostgresSource(dsn)
