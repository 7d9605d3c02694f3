"""Replication slots: the connector's permanent one, and temporary ones that export a snapshot."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import sql

from tailrace.errors import DefiniteError, TransientError
from tailrace.source.postgres._connection import connect, missing_replication
from tailrace.source.postgres._lsn import Lsn
from tailrace.source.postgres._queries import load

QUERIES = load("replication.sql")

LOCK_TIMEOUT_MS = 120_000
"""A slot waits for every transaction that is running; after this long a person is told which."""

RELEASE_SECONDS = 10


@dataclass(frozen=True)
class Slot:
    """What the server knows of a slot."""

    name: str
    database: str
    active_pid: int | None
    confirmed_flush_lsn: Lsn
    wal_status: str | None


@dataclass(frozen=True)
class ExportedSnapshot:
    """A Postgres snapshot others can join, and the LSN it stands at: it shows every transaction
    whose commit record lies before `lsn`, and no other."""

    name: str
    lsn: Lsn


def find_slot(conn: psycopg.Connection, name: str) -> Slot | None:
    row = conn.execute(QUERIES["slot"], {"slot": name}).fetchone()
    if row is None:
        return None
    if row[5] != "logical":
        raise DefiniteError(f"slot {name} is a physical slot", "choose another name with --slot")
    if row[0] != row[6]:
        raise DefiniteError(f"slot {name} belongs to database {row[0]}", "choose another name with --slot")
    if row[1] != "pgoutput":
        raise DefiniteError(f"slot {name} uses the plugin {row[1]}, not pgoutput", "choose another name with --slot")
    return Slot(name, row[0], row[2], Lsn.parse(row[3]), row[4])


def require_slot(conn: psycopg.Connection, name: str, end: Lsn) -> Slot:
    """The slot, which must still hold what follows `end`, where our log ends."""
    slot = find_slot(conn, name)
    if slot is None:
        raise DefiniteError(
            f"replication slot {name} is gone: changes since {end} cannot be read any more",
            "start a new lake in an empty folder",
        )
    if slot.wal_status == "lost":
        raise DefiniteError(
            f"replication slot {name} was invalidated: the server removed WAL we had not read",
            "raise max_slot_wal_keep_size, then start a new lake in an empty folder",
        )
    return slot


def require_continuity(conn: psycopg.Connection, name: str, end: Lsn) -> None:
    """Refuse to continue over a gap between `end`, where our log ends now, and what the slot still sends. Only for
    the process that confirms: the slot moves while another one does."""
    slot = require_slot(conn, name, end)
    if end and slot.confirmed_flush_lsn > end:
        raise DefiniteError(
            f"slot {name} is confirmed up to {slot.confirmed_flush_lsn}, our log ends at {end}: "
            "another process read from it and those changes are lost",
            "start a new lake in an empty folder with a slot of its own",
        )


def require_slot_name(name: str) -> None:
    if not re.fullmatch("[a-z0-9_]{1,63}", name):
        raise DefiniteError(
            f"{name!r} cannot be a slot's name", "use up to 63 lowercase letters, digits and underscores"
        )


def create_slot(dsn: str, name: str) -> Lsn:
    """Create the connector's slot. Returns its consistent point: every later commit will be sent."""
    with connect(dsn, replication=True) as conn:
        return _create(conn, dsn, name, "NOEXPORT", temporary=False).lsn


@contextmanager
def exported_snapshot(dsn: str, name: str) -> Iterator[ExportedSnapshot]:
    """A consistent snapshot of the whole database, valid inside the `with`.

    Only a slot's snapshot stands at an exact LSN, so a temporary slot makes it; the server
    drops the slot with the connection, also when we are killed.
    """
    with connect(dsn, replication=True) as conn:
        yield _create(conn, dsn, name, "EXPORT", temporary=True)


def drop_slot(conn: psycopg.Connection, name: str) -> bool:
    """Drop a slot if it is there. Says whether it was. Waits a little for a walsender that is just ending."""
    deadline = time.monotonic() + RELEASE_SECONDS
    while find_slot(conn, name) is not None:
        try:
            conn.execute("select pg_drop_replication_slot(%s)", (name,))
            return True
        except psycopg.errors.ObjectInUse as error:
            if time.monotonic() > deadline:
                raise DefiniteError(error.diag.message_primary or str(error), "stop the running tailrace") from None
            time.sleep(0.1)
    return False


def _create(conn: psycopg.Connection, dsn: str, name: str, snapshot: str, *, temporary: bool) -> ExportedSnapshot:
    command = sql.SQL("CREATE_REPLICATION_SLOT {} {} LOGICAL pgoutput {}").format(
        sql.Identifier(name), sql.SQL("TEMPORARY" if temporary else ""), sql.SQL(f"{snapshot}_SNAPSHOT")
    )
    # A walsender takes `set` like any session, and lock_timeout is the one limit slot creation obeys.
    conn.execute(sql.SQL("set lock_timeout = {}").format(sql.Literal(LOCK_TIMEOUT_MS)))
    try:
        row = conn.execute(command).fetchone()
    except psycopg.errors.LockNotAvailable:
        raise TransientError(
            f"creating slot {name} waited {LOCK_TIMEOUT_MS // 1000} s for transactions that are still open",
            _who_blocks(dsn),
        ) from None
    except psycopg.errors.ConfigurationLimitExceeded:
        raise DefiniteError(
            "the server has no free replication slot", "drop an unused slot or raise max_replication_slots"
        ) from None
    except psycopg.errors.InsufficientPrivilege:
        raise missing_replication(dsn) from None
    except psycopg.errors.ObjectNotInPrerequisiteState:
        raise DefiniteError(
            "the server's wal_level is not logical",
            "alter system set wal_level = logical; then restart the server",
        ) from None
    assert row is not None
    return ExportedSnapshot(name=row[2] or "", lsn=Lsn.parse(row[1]))


def _who_blocks(dsn: str) -> str:
    with connect(dsn) as conn:
        rows = conn.execute(QUERIES["open_transactions"]).fetchall()
    return "; ".join(f"pid {pid} ({user}) since {since}: {query}" for pid, user, since, query in rows) or "try again"
