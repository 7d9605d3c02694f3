"""Why a server does not let us in, in words a person can act on.

Some refusals are known by names that are not translated (`pg_hba.conf`, `max_wal_senders`, CONNECT), and all by their
words if the server speaks English. Else the SQLSTATE tells (`_sqlstate`), for which the server has to be asked again;
where several refusals have the same one, what is said names each of them. What is not recognised is shown as it is,
with all that can be checked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import psycopg
from psycopg import sql

from tailrace.errors import DefiniteError, TailraceError, TransientError
from tailrace.source.postgres.server.address import describe, user_of


class ServerFullError(TransientError):
    """The server, the database or the role has no connection left."""


@dataclass(frozen=True)
class _Refusal:
    """One kind: what of its text tells it, any of these, and what is said instead."""

    told_by: tuple[str, ...]
    kind: type[TailraceError]
    message: str
    hint: str


_PASSWORD = _Refusal(
    ("password authentication failed", "no password supplied"),
    DefiniteError,
    "the server refused the password of {user}",
    "check the password in the connection string, in PGPASSWORD or in ~/.pgpass",
)
_REPLICATION = _Refusal(
    ("must be superuser or replication role", "permission denied to start WAL sender", "REPLICATION"),
    DefiniteError,
    "user {user} lacks the REPLICATION privilege",
    "alter role {role} with replication",
)
_TLS = (
    _Refusal(
        ("server requested a cleartext password",),
        DefiniteError,
        "the server wants the password in clear text, and TLS is not required",
        "require TLS: sslmode=require; or have pg_hba.conf say scram-sha-256 for this user",
    ),
    _Refusal(
        ("certificate verify failed",),
        DefiniteError,
        "the server's certificate is not trusted: {reason}",
        "name the file of the certificates that it is checked by: sslrootcert=FILE, or =system for this machine's own",
    ),
    _Refusal(
        ("does not match host name",),
        DefiniteError,
        "the server's certificate is for another host: {reason}",
        "connect by a name that it has; sslmode=verify-ca does without this check",
    ),
    _Refusal(
        ("root certificate file", "certificate file", "private key file"),
        DefiniteError,
        "the connection string asks for a certificate that cannot be used: {reason}",
        "check sslrootcert, sslcert and sslkey; no one else may read a key: chmod 600",
    ),
    _Refusal(
        ("does not support SSL",),
        DefiniteError,
        "the server does not offer TLS",
        "alter system set ssl = on, with ssl_cert_file and ssl_key_file; sslmode=disable does without",
    ),
    _Refusal(
        ("valid client certificate", "certificate authentication failed"),
        DefiniteError,
        "the server wants a certificate of {user}",
        "name the files of one whose common name is {user}: sslcert=FILE sslkey=FILE",
    ),
)
_FULL = _Refusal(
    ("too many clients", "too many connections", "remaining connection slots are reserved"),
    ServerFullError,
    "the server has no connection left for {user}",
    "end some, or raise the limit of the role ({limit}), of the database or of the server (max_connections)",
)
_CLOSED = _Refusal(
    ("is not currently accepting connections",),
    DefiniteError,
    "this database takes no connections",
    "alter database {database} allow_connections true;",
)
_REFUSALS = (
    _PASSWORD,
    *_TLS,
    _Refusal(
        ("CONNECT",),
        DefiniteError,
        "user {user} may not connect to this database",
        "grant connect on database {database} to {role};",
    ),
    _REPLICATION,
    _Refusal(
        ("max_wal_senders",),
        TransientError,
        "the server has no wal sender left",
        "alter system set max_wal_senders = 10; then restart the server",
    ),
    _Refusal(
        ("pg_hba.conf",),
        DefiniteError,
        "the server's pg_hba.conf does not let us in",
        "add a line for this user, database and address to pg_hba.conf and reload",
    ),
    _FULL,
    _Refusal(
        ("is not permitted to log in",),
        DefiniteError,
        "user {user} may not log in",
        "alter role {role} with login;",
    ),
    _CLOSED,
)
_NO_DATABASE = re.compile(r'database "[^"]*" does not exist')
_NO_ROLE = re.compile(r'role "[^"]*" does not exist')
_OF_STATE = {
    "28P01": _PASSWORD,
    "53300": _FULL,
    "55000": _CLOSED,
    "42501": _Refusal(
        (),
        DefiniteError,
        "user {user} may not connect to this database, or lacks the REPLICATION privilege",
        "grant connect on database {database} to {role}; alter role {role} with replication;",
    ),
    "28000": _Refusal(
        (),
        DefiniteError,
        "no such user, or user {user} may not log in",
        "create role {role} login replication; or alter role {role} with login;",
    ),
    "3D000": _Refusal((), DefiniteError, "no such database", "list the databases with: psql -l"),
}
"""What is said where only the SQLSTATE is understood."""
_NAME = re.compile(r'["»„«](?!max_wal_senders)[^"«“»]*["«“»]')
"""A database may be called CONNECT."""
_WHAT_TO_CHECK = (
    "check that the server runs there and takes connections; host, port, database, user, password and sslmode; "
    "pg_hba.conf; and that a connection is left"
)


def explain(
    error: psycopg.OperationalError, dsn: str, ask_state: Callable[[], str | None] = lambda: None
) -> TailraceError:
    """Which kind of failure to connect this is: transient where waiting may help. `ask_state` finds the SQLSTATE."""
    text = " ".join(str(error).split())
    if error.pgconn is not None and error.pgconn.needs_password:
        return _say(_PASSWORD, error, dsn)
    unnamed = _NAME.sub("", text)
    for refusal in _REFUSALS:
        if any(words in unnamed for words in refusal.told_by):
            return _say(refusal, error, dsn)
    where = describe(dsn)
    if _NO_DATABASE.search(text):
        return DefiniteError(f"{where}: no such database", "list the databases with: psql -l")
    if _NO_ROLE.search(text):
        role = sql.Identifier(_user(error, dsn)).as_string(None)
        return DefiniteError(f"{where}: no such user", f"create role {role} login replication")
    state = None if isinstance(error, psycopg.errors.ConnectionTimeout) else ask_state()
    if state in _OF_STATE:
        return _say(_OF_STATE[state], error, dsn)
    return TransientError(f"{where}: cannot connect: {_reason(text)}", _WHAT_TO_CHECK)


def missing_replication(dsn: str, user: str) -> DefiniteError:
    """The user may not stream changes."""
    role = sql.Identifier(user).as_string(None)
    message = f"{describe(dsn)}: {_REPLICATION.message.format(user=user)}"
    return DefiniteError(message, _REPLICATION.hint.format(role=role))


def _say(refusal: _Refusal, error: psycopg.OperationalError, dsn: str) -> TailraceError:
    user = _user(error, dsn)
    database = error.pgconn.db.decode() if error.pgconn is not None else ""
    role = sql.Identifier(user).as_string(None)
    words = {
        "user": user,
        "role": role,
        "database": sql.Identifier(database).as_string(None),
        "limit": f"alter role {role} connection limit …;",
        "reason": _reason(" ".join(str(error).split())),
    }
    return refusal.kind(f"{describe(dsn)}: {refusal.message.format(**words)}", refusal.hint.format(**words))


def _user(error: psycopg.OperationalError, dsn: str) -> str:
    known = error.pgconn.user.decode() if error.pgconn is not None else ""
    return known or user_of(dsn) or "this user"


def _reason(text: str) -> str:
    """What each server that was tried said, without libpq's own advice."""
    _, _, attempts = text.partition("All failures were:")
    parts = attempts.split(" - host:") if attempts else [text]
    reasons = [part.rsplit("failed: ", maxsplit=1)[-1].split(" Is the server", maxsplit=1)[0] for part in parts]
    return "; ".join(dict.fromkeys(reasons))
