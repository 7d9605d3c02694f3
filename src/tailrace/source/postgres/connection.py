"""Connections to a Postgres server, all with the same text output.

The stream and the snapshot must write a value alike, so every connection forces the settings
that decide how Postgres prints values. Passwords never appear in an error.
"""

from __future__ import annotations

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tailrace.errors import DefiniteError, TailraceError, TransientError

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


def describe(dsn: str) -> str:
    """The connection string for a person: host, port, database; no password."""
    given = conninfo_to_dict(dsn)
    host, port = given.get("host") or "localhost", given.get("port") or "5432"
    user = f"{given['user']}@" if given.get("user") else ""
    return f"{user}{host}:{port}/{given.get('dbname') or given.get('user') or ''}"


def explain(error: psycopg.OperationalError, dsn: str) -> TailraceError:
    """Which kind of failure this is, in words a person can act on."""
    text = " ".join(str(error).split())
    where = describe(dsn)
    user = conninfo_to_dict(dsn).get("user") or "this user"
    if "password authentication failed" in text or "no password supplied" in text:
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
        f"{where}: cannot connect: {reason}", "is the server running there, and is host and port right?"
    )


def missing_replication(dsn: str) -> DefiniteError:
    """The user may not stream changes."""
    user = conninfo_to_dict(dsn).get("user") or "the_user"
    return DefiniteError(
        f"{describe(dsn)}: user {user} lacks the REPLICATION privilege", f'alter role "{user}" with replication'
    )
