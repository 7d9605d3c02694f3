"""The oldest and the newest Postgres at hand."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from demo.embedded import EmbeddedPostgres

from tailrace.source.postgres.connection import connect

_numbers = itertools.count(1)


@pytest.fixture(scope="session", params=[16, 18])
def server(request: pytest.FixtureRequest) -> Iterator[EmbeddedPostgres]:
    """A server of each version, with `wal_level = logical`."""
    if request.param == 18:
        yield request.getfixturevalue("postgres")
        return
    # Not in pytest's own folder: the next pytest closes that to the system user Postgres runs as.
    with (
        TemporaryDirectory(prefix="tailrace-") as folder,
        EmbeddedPostgres(Path(folder) / "data", version=request.param) as started,
    ):
        yield started


@pytest.fixture
def dsn(server: EmbeddedPostgres) -> Iterator[str]:
    """An empty database of its own."""
    name = f"source_{next(_numbers)}"
    yield server.create_database(name)
    server.drop_database(name)


@pytest.fixture
def conn(dsn: str) -> Iterator[psycopg.Connection]:
    with connect(dsn) as connection:
        yield connection
