"""What tests of MySQL and MariaDB share: one server of each make for the whole run."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from tests.mysql_servers import MARIADB, MYSQL, MySqlServer, mysql_server

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def mysql() -> Iterator[MySqlServer]:
    with mysql_server(MYSQL) as server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MySqlServer]:
    with mysql_server(MARIADB) as server:
        yield server


@pytest.fixture(params=["mysql", "mariadb"])
def server(request: pytest.FixtureRequest) -> MySqlServer:
    """One after the other."""
    found: MySqlServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def database(server: MySqlServer) -> Iterator[str]:
    """The name of an empty database."""
    name = f"test_{next(_numbers)}"
    server.execute(f"create database {name}")
    yield name
    server.execute(f"drop database {name}")
