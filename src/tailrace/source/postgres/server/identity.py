"""Which server and database this is, and whether changes can be streamed from it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

import psycopg

from tailrace.errors import DefiniteError, MovedError
from tailrace.source.postgres.named_sql import load
from tailrace.source.postgres.server.connection import connect
from tailrace.source.postgres.server.lsn import Lsn
from tailrace.source.postgres.server.refusals import missing_replication

QUERIES = load("server/identity.sql")
VERSION_MIN = 120000
STANDBY_SINCE = 160000
"""The version from which on a standby streams changes."""
FLUSH_SECONDS = 0.4
"""How long a server gets to flush its log by itself."""
TURN_SECONDS = 0.02
PAGE_HEADERS_BYTES = (24, 40)
"""Of an ordinary page, and of the first page of a WAL file."""


@dataclass(frozen=True)
class Identity:
    """A database cluster is known by its system identifier, not by its address."""

    system_identifier: str
    timeline: int
    database: str
    end: Lsn
    """Up to where its WAL is safe."""
    is_standby: bool = False

    @property
    def log_identity(self) -> dict[str, str]:
        """What a log and a lake must agree on."""
        return {"source": "postgres", "system_identifier": self.system_identifier, "database": self.database}


def identify(replication_conn: psycopg.Connection) -> Identity:
    row = replication_conn.execute("IDENTIFY_SYSTEM").fetchone()
    assert row is not None
    return Identity(system_identifier=str(row[0]), timeline=int(row[1]), database=str(row[3]), end=Lsn.parse(row[2]))


def require_identity(known: Mapping[str, str], found: Identity) -> None:
    """A server at the same address may be another one than the log was written from."""
    if dict(known) != found.log_identity:
        raise MovedError(
            f"the server is system {found.system_identifier}, database {found.database}; the log is of system "
            f"{known.get('system_identifier')}, database {known.get('database')}",
            "connect to the database that the log was written from",
        )


def require_streaming(conn: psycopg.Connection, dsn: str) -> Identity:
    """Who the server is; a definite error unless it can stream changes to this user."""
    row = conn.execute(QUERIES["server"]).fetchone()
    assert row is not None
    _, version, wal_level, in_recovery, may_replicate = row
    if version < VERSION_MIN:
        raise DefiniteError(f"Postgres {version // 10000} is too old", "Tailrace needs Postgres 12 or newer")
    if wal_level != "logical":
        raise DefiniteError(
            f"the server's wal_level is {wal_level}, not logical",
            "alter system set wal_level = logical; then restart the server",
        )
    if in_recovery and version < STANDBY_SINCE:
        message = f"the server is a standby, and one of Postgres {version // 10000} cannot stream changes"
        raise DefiniteError(message, "connect to the primary, or use Postgres 16 or newer")
    if not may_replicate:
        raise missing_replication(dsn, conn.info.user)
    with connect(dsn, replication=True) as replication_conn:
        return replace(identify(replication_conn), is_standby=in_recovery)


def wal_position(conn: psycopg.Connection) -> Lsn:
    """Where the server's log ends now: every transaction committed before has its commit record below. A standby may
    show one more, whose commit it is replaying at this moment."""
    row = conn.execute(QUERIES["wal_position"]).fetchone()
    assert row is not None
    return end_of_records(Lsn.parse(row[0]), row[1])


def is_flushed(conn: psycopg.Connection, position: Lsn) -> bool:
    """Whether the server's log survives a crash up to a position."""
    row = conn.execute(QUERIES["is_flushed"], {"position": str(position)}).fetchone()
    return row is not None and bool(row[0])


def flush_soon(conn: psycopg.Connection, position: Lsn) -> None:
    """Have the server flush its log up to a position, and send what is there, if it does not do so by itself.

    What ends is flushed within the 200 ms of its walwriter. But what an open transaction has written to a page that is
    not full, an idle server leaves for 15 seconds or more. A transaction that only takes a number has it flush that
    too. It changes nothing. Not inside another transaction.
    """
    deadline = time.monotonic() + FLUSH_SECONDS
    while not is_flushed(conn, position):
        if time.monotonic() > deadline:
            conn.execute(QUERIES["take_number"])
            return
        time.sleep(TURN_SECONDS)


def reached_soon(conn: psycopg.Connection) -> Lsn:
    """Where the server's log ends now, for who waits until the stream has got there."""
    position = wal_position(conn)
    flush_soon(conn, position)
    return position


def end_of_records(insert_lsn: Lsn, block_bytes: int) -> Lsn:
    """The end of the last record, as a walsender reports it.

    Where the last record fills its page, the insert position is already after the next page's
    header; an idle server never reports a position there.
    """
    in_page = insert_lsn % block_bytes
    return Lsn(insert_lsn - in_page) if in_page in PAGE_HEADERS_BYTES else insert_lsn
