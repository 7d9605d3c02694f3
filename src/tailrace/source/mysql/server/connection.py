"""Connections to a server: the driver does handshake, TLS and passwords, and asks questions.

A lost connection, a server that is starting or stopping, and too many connections are transient. All else that the
server refuses is definite. No error has the password in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pymysql
from pymysql.connections import Connection
from pymysql.err import InterfaceError, OperationalError

from tailrace.errors import DefiniteError, TransientError
from tailrace.source.mysql.server.address import ServerAddress

CONNECT_SECONDS = 10
_TRANSIENT = (
    *(1040, 1041, 1053, 1077, 1079, 1152, 1153, 1158, 1159, 1160, 1161, 1203, 1205, 1213, 1226, 1290),
    *(2002, 2003, 2005, 2006, 2012, 2013, 2014, 2026, 2055, 3169, 4031),
)
_HINTS = {
    1044: "grant the user the right, or name another one",
    1045: "check the user and the password",
    1130: "let the user connect from this host",
    1227: "grant replication slave, replication client on *.* to the user",
    2061: "give a password over TLS: ssl-mode=required",
}
_SESSION = "set time_zone = '+00:00', sql_mode = '', net_write_timeout = 600, net_read_timeout = 600"


class ClearPassword:
    """In place of the driver's way to send a password as it is, which any server could ask for."""

    def __init__(self, _: Connection[Any]) -> None:
        pass

    def authenticate(self, _: Any) -> Any:
        raise DefiniteError("the server asks for the password in clear text", "give the user another way to sign in")


@contextmanager
def explained(address: ServerAddress) -> Iterator[None]:
    """Turn what the driver raises into a transient or a definite error."""
    try:
        yield
    except InterfaceError as error:
        raise TransientError(f"{address}: the connection is gone: {error}") from None
    except pymysql.err.MySQLError as error:
        raise of_driver(error, str(address)) from None
    except OSError as error:
        raise TransientError(f"{address}: {error.strerror or error}") from None


def of_driver(error: pymysql.err.MySQLError, where: str) -> DefiniteError | TransientError:
    """What an error of the driver means."""
    code = error.args[0] if error.args and isinstance(error.args[0], int) else 0
    message = f"{where}: {error.args[-1] if error.args else error}"
    is_lost = code in _TRANSIENT or (isinstance(error, OperationalError) and not code)
    return TransientError(message, _HINTS.get(code)) if is_lost else DefiniteError(message, _HINTS.get(code))


@contextmanager
def connected(address: ServerAddress) -> Iterator[Connection[Any]]:
    """A connection that is closed at the end of the `with`. What the driver raises in it is explained."""
    with explained(address):
        connection = pymysql.connect(
            **address.arguments,
            charset="utf8mb4",
            autocommit=True,
            connect_timeout=CONNECT_SECONDS,
            read_timeout=CONNECT_SECONDS * 6,
            auth_plugin_map={b"mysql_clear_password": ClearPassword, "mysql_clear_password": ClearPassword},
        )
        try:
            ask(connection, _SESSION)
            yield connection
        finally:
            if connection.open:
                connection.close()


def ask(connection: Connection[Any], statement: str, *values: Any) -> list[tuple[Any, ...]]:
    """The rows of one statement."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values or None)
        return list(cursor.fetchall())
