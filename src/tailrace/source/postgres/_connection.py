"""Connections to a Postgres server, all with the same text output.

The stream and the snapshot must write a value alike, so every connection forces the settings
that decide how Postgres prints values. Passwords never appear in an error.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tailrace.errors import DefiniteError, TailraceError, TransientError

Answer = TypeVar("Answer")

OUTPUT_SETTINGS = {
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "extra_float_digits": "3",
    "TimeZone": "UTC",
    "bytea_output": "hex",
    # A copy may take longer than the time limits an administrator sets for applications.
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
}


def connect(dsn: str, *, replication: bool = False, autocommit: bool = True) -> psycopg.Connection:
    """Open a connection. A failure becomes one line and a hint, transient where waiting may help."""
    options = " ".join(f"-c {name}={value}" for name, value in OUTPUT_SETTINGS.items())
    try:
        given = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        raise DefiniteError(
            "that is not a Postgres connection string",
            "it looks like postgresql://user:password@host:5432/database",
        ) from None
    extra: dict[str, str] = {
        "keepalives_idle": "30",
        "tcp_user_timeout": "60000",
        "client_encoding": "UTF8",
        "application_name": "tailrace",
        "options": f"{given.get('options') or ''} {options}".strip(),
    }
    if "connect_timeout" not in given:
        extra["connect_timeout"] = "10"
    if replication:
        extra["replication"] = "database"
    try:
        return psycopg.connect(make_conninfo(dsn, **extra), autocommit=autocommit)
    except psycopg.OperationalError as error:
        raise explain(error, dsn) from None


@contextmanager
def session(dsn: str) -> Iterator[psycopg.Connection]:
    """A connection for some queries; whatever the server answers them with becomes an error of ours."""
    with connect(dsn) as conn, explained(dsn):
        yield conn


class KeptConnection:
    """One connection for many short questions, opened at the first and again when it broke. Any thread may ask."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._conn: psycopg.Connection | None = None
        self._lock = threading.Lock()

    def ask(self, question: Callable[[psycopg.Connection], Answer]) -> Answer:
        """The answer; asks once more on a new connection where the old one broke."""
        with self._lock, explained(self._dsn):
            if self._conn is None:
                self._conn = connect(self._dsn)
            try:
                return question(self._conn)
            except psycopg.OperationalError:
                self.close()
                self._conn = connect(self._dsn)
                return question(self._conn)

    def close(self) -> None:
        if self._conn is not None:
            self._conn.close()
        self._conn = None

    def __del__(self) -> None:
        self.close()


@contextmanager
def explained(dsn: str) -> Iterator[None]:
    """The driver's errors as ours: transient where the driver says that the server or the network is to blame."""
    try:
        yield
    except psycopg.OperationalError as error:
        raise TransientError(f"{describe(dsn)}: {one_line(error)}") from None
    except psycopg.Error as error:
        raise DefiniteError(f"{describe(dsn)}: the server refuses: {one_line(error)}") from None


def one_line(error: psycopg.Error) -> str:
    """What the server said, without its hints and line breaks."""
    return " ".join((error.diag.message_primary or str(error)).split())


def describe(dsn: str) -> str:
    """The connection string for a person: host, port, database; no password."""
    given = conninfo_to_dict(dsn)
    host, port = given.get("host") or "localhost", given.get("port") or "5432"
    user = f"{given['user']}@" if given.get("user") else ""
    return f"{user}{host}:{port}/{given.get('dbname') or given.get('user') or ''}"


def explain(error: psycopg.OperationalError, dsn: str) -> TailraceError:
    """Which kind of failure to connect this is, in words a person can act on.

    libpq keeps no SQLSTATE of a refused connection, only the server's text, in the server's language. What the text
    does not tell in another language than English is taken for transient, and shown as it is.
    """
    text = " ".join(str(error).split())
    where = describe(dsn)
    user = conninfo_to_dict(dsn).get("user") or "this user"
    needs_password = error.pgconn is not None and error.pgconn.needs_password
    if needs_password or "password authentication failed" in text or "no password supplied" in text:
        return DefiniteError(
            f"{where}: the server refused the password of {user}",
            "check the password in the connection string, in PGPASSWORD or in ~/.pgpass",
        )
    if "does not exist" in text and "database" in text:
        return DefiniteError(f"{where}: no such database", "list the databases with: psql -l")
    if "must be superuser or replication role" in text or "permission denied to start WAL sender" in text:
        return missing_replication(dsn)
    if "no pg_hba.conf entry" in text:
        return DefiniteError(
            f"{where}: the server's pg_hba.conf does not let us in",
            "add a line for this user, database and address to pg_hba.conf and reload",
        )
    if "role" in text and "does not exist" in text:
        return DefiniteError(f"{where}: no such user", f'create role "{user}" login replication')
    reason = text.rsplit("failed: ", maxsplit=1)[-1].split(" Is the server", maxsplit=1)[0]
    return TransientError(
        f"{where}: cannot connect: {reason}", "is the server running there, and are host, port and password right?"
    )


def missing_replication(dsn: str) -> DefiniteError:
    """The user may not stream changes."""
    user = conninfo_to_dict(dsn).get("user") or "the_user"
    return DefiniteError(
        f"{describe(dsn)}: user {user} lacks the REPLICATION privilege", f'alter role "{user}" with replication'
    )
