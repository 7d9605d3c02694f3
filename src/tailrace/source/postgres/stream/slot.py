"""Replication slots: the connector's permanent one, and temporary ones that export a snapshot."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import sql

from tailrace.errors import DefiniteError, GapError, TransientError
from tailrace.source.door.values import Retained
from tailrace.source.postgres.named_sql import load
from tailrace.source.postgres.server.connection import connect
from tailrace.source.postgres.server.lock_waits import Waiter, open_writers
from tailrace.source.postgres.server.lsn import Lsn
from tailrace.source.postgres.server.refusals import missing_replication
from tailrace.source.postgres.server.timeline import REPAIR

QUERIES = load("stream/slot.sql")

_REASONS = {
    "wal_removed": (
        "the server removed WAL that we had not read",
        "alter system set max_slot_wal_keep_size = -1; select pg_reload_conf();",
    ),
    "rows_removed": (
        "the server removed catalog rows that are needed to read its WAL",
        "alter system set hot_standby_feedback = on; on this standby, then select pg_reload_conf();",
    ),
    "wal_level_insufficient": (
        "the server ran with another wal_level for a while",
        "keep wal_level = logical, on the primary too",
    ),
    "conflict": (
        "the server removed catalog rows that are needed to read its WAL, or its primary ran with another wal_level",
        "alter system set hot_standby_feedback = on; on this standby, then select pg_reload_conf();",
    ),
    "idle_timeout": (
        "it was not read for longer than the server allows",
        "alter system set idle_replication_slot_timeout = 0; select pg_reload_conf();",
    ),
}
"""Why the server gave up a slot (told since Postgres 17), and what keeps it from doing so again."""
RELEASE_SECONDS = 10
FAILOVER_SINCE = 170000


@dataclass(frozen=True)
class Slot:
    """What the server knows of a slot."""

    name: str
    database: str
    active_pid: int | None
    confirmed_flush_lsn: Lsn | None
    """None while the server is making the slot."""
    wal_status: str | None
    restart_lsn: Lsn | None = None
    """Where the server begins to read when it has to send something."""
    invalidation_reason: str | None = None
    safe_wal_size: int | None = None
    """How many bytes may still be written before the server may give it up; None where it never does."""


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
    confirmed, restart = (None if text is None else Lsn.parse(text) for text in (row[3], row[7]))
    return Slot(name, row[0], row[2], confirmed, row[4], restart, row[8], row[9])


def retained(conn: psycopg.Connection, name: str) -> Retained | None:
    """What the server keeps for a slot; None without one, and for one that it has given up."""
    row = conn.execute(QUERIES["retained"], {"slot": name}).fetchone()
    return None if row is None else Retained(max(0, row[0]), row[1])


def find_ready_slot(conn: psycopg.Connection, name: str, *, is_ours: bool) -> Slot | None:
    """The slot if it is there and ready. The server continues making a slot for a process that has died, until it is
    ready; `is_ours` says that no living process can want this one, and what is half made is removed."""
    found = find_slot(conn, name)
    if found is None or found.confirmed_flush_lsn is not None:
        return found
    maker = f"slot {name} is still being made by process {found.active_pid} of the server"
    end = f"select pg_terminate_backend({found.active_pid});"
    if not is_ours:
        raise TransientError(maker, f"wait until it is ready; if nothing needs it: {end}")
    try:
        conn.execute("select pg_terminate_backend(%s)", [found.active_pid])
    except psycopg.errors.InsufficientPrivilege:
        raise TransientError(f"{maker}, for a tailrace that is gone", end) from None
    deadline = time.monotonic() + RELEASE_SECONDS
    while (left := find_slot(conn, name)) is not None and left.confirmed_flush_lsn is None:
        if time.monotonic() > deadline:
            raise TransientError(f"{maker}, which does not end", end)
        time.sleep(0.05)
    return left


def confirmed_lsn(conn: psycopg.Connection, name: str) -> Lsn:
    """Up to where a slot is confirmed; 0 without one."""
    slot = find_slot(conn, name)
    return (slot.confirmed_flush_lsn if slot is not None else None) or Lsn(0)


def require_slot(conn: psycopg.Connection, name: str, end: Lsn) -> Lsn:
    """A definite error unless the slot still holds what follows `end`, where our log ends. Up to where it is
    confirmed."""
    slot = find_slot(conn, name)
    if slot is None or slot.confirmed_flush_lsn is None:
        raise GapError(
            f"replication slot {name} is gone: changes since {end} cannot be read any more",
            f"make sure that nothing drops it; {REPAIR}",
        )
    if slot.wal_status == "lost":
        reason, remedy = why_lost(slot.invalidation_reason)
        raise GapError(
            f"replication slot {name} was invalidated: {reason}; changes since {end} cannot be read any more",
            f"{remedy} then {REPAIR}",
        )
    return slot.confirmed_flush_lsn


def why_lost(reason: str | None) -> tuple[str, str]:
    """Why the server gave up a slot, and what keeps it from doing so again. A server that is newer than we are may
    have other reasons."""
    return _REASONS.get(
        reason or "wal_removed", (f"the server's reason is {reason}", "see what its log says of the slot;")
    )


def require_continuity(conn: psycopg.Connection, name: str, end: Lsn) -> Lsn:
    """Refuse to continue over a gap between `end`, where our log ends now, and what the slot still sends. Only for
    the process that confirms: the slot moves while another one does. Up to where it is confirmed."""
    confirmed = require_slot(conn, name, end)
    if end and confirmed > end:
        raise GapError(
            f"slot {name} is confirmed up to {confirmed}, our log ends at {end}: "
            "another process read from it, or it was made again, and those changes are lost",
            f"let nothing else read from it; then {REPAIR}",
        )
    return confirmed


def require_slot_name(name: str) -> None:
    if not re.fullmatch("[a-z0-9_]{1,63}", name):
        raise DefiniteError(
            f"{name!r} cannot be a slot's name", "use up to 63 lowercase letters, digits and underscores"
        )


def create_slot(dsn: str, name: str, waiter: Waiter, *, failover: bool = False) -> Lsn:
    """Create the connector's slot. Returns its consistent point: every later commit will be sent. With `failover`,
    standbys that synchronise slots keep it too."""
    with closing(connect(dsn, replication=True)) as conn:
        if failover and conn.info.server_version < FAILOVER_SINCE:
            raise DefiniteError(
                f"Postgres {conn.info.server_version // 10000} has no failover slots",
                "leave out --failover-slot, or use Postgres 17 or newer",
            )
        return _create(
            conn, dsn, name, "(SNAPSHOT 'nothing', FAILOVER)" if failover else "NOEXPORT_SNAPSHOT", waiter
        ).lsn


@contextmanager
def exported_snapshot(dsn: str, name: str, waiter: Waiter) -> Iterator[ExportedSnapshot]:
    """A consistent snapshot of the whole database, valid inside the `with`.

    Only a slot's snapshot stands at an exact LSN, so a temporary slot makes it; the server
    drops the slot with the connection, also when we are killed.
    """
    with closing(connect(dsn, replication=True)) as conn:
        yield _create(conn, dsn, name, "EXPORT_SNAPSHOT", waiter)


def drop_slot(conn: psycopg.Connection, name: str) -> bool:
    """Drop a slot of ours if it is there. Says whether it was. Waits a little for a walsender that is just ending."""
    deadline = time.monotonic() + RELEASE_SECONDS
    was_there = find_slot(conn, name) is not None
    while find_ready_slot(conn, name, is_ours=True) is not None:
        try:
            conn.execute("select pg_drop_replication_slot(%s)", (name,))
            return True
        except psycopg.errors.ObjectInUse as error:
            if time.monotonic() > deadline:
                raise DefiniteError(error.diag.message_primary or str(error), "stop the running tailrace") from None
            time.sleep(0.1)
    return was_there


def _create(conn: psycopg.Connection, dsn: str, name: str, how: str, waiter: Waiter) -> ExportedSnapshot:
    lifetime = sql.SQL("TEMPORARY" if how == "EXPORT_SNAPSHOT" else "")
    command = sql.SQL("CREATE_REPLICATION_SLOT {} {} LOGICAL pgoutput {}").format(
        sql.Identifier(name), lifetime, sql.SQL(how)
    )
    undo = sql.SQL("DROP_REPLICATION_SLOT {}").format(sql.Identifier(name))
    try:
        result = waiter.run(conn, command, open_writers(f"creating slot {name}"), undo)
    except psycopg.errors.ConfigurationLimitExceeded:
        raise DefiniteError(
            "the server has no free replication slot", "drop an unused slot or raise max_replication_slots"
        ) from None
    except psycopg.errors.InsufficientPrivilege:
        raise missing_replication(dsn, conn.info.user) from None
    except psycopg.errors.ObjectNotInPrerequisiteState:
        raise DefiniteError(
            "the server's wal_level is not logical, or its primary's is not",
            "alter system set wal_level = logical; then restart the server",
        ) from None
    lsn, exported = result.get_value(0, 1), result.get_value(0, 2)
    assert lsn is not None
    return ExportedSnapshot(name=(exported or b"").decode(), lsn=Lsn.parse(lsn.decode()))
