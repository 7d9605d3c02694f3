"""Whether the stream can be had as a person wants it: from the slot that is named, and with what was asked of it."""

from __future__ import annotations

import psycopg
from psycopg import sql

from tailrace.errors import DefiniteError
from tailrace.source.door.tables import Check
from tailrace.source.postgres.named_sql import load
from tailrace.source.postgres.stream.protocol import StreamOptions, plugin_options
from tailrace.source.postgres.stream.slot import FAILOVER_SINCE, find_slot, require_slot_name
from tailrace.source.postgres.stream.slot_holder import SlotHolder

QUERIES = load("doctor/doctor.sql")
_RESTART = "after this change restart the server"


def check_named_slot(conn: psycopg.Connection, name: str) -> Check:
    """A slot that a person has named: one that is not there is made, one that is there must be free and whole."""
    try:
        require_slot_name(name)
        slot = find_slot(conn, name)
    except DefiniteError as error:
        return Check("slot", False, error.message, error.hint)
    if slot is None:
        return Check("slot", True, f"{name} is not there yet and is made")
    if slot.wal_status == "lost":
        drop = f"select pg_drop_replication_slot({sql.Literal(name).as_string(None)});"
        return Check("slot", False, f"the server has given {name} up; it is made again once it is dropped", drop)
    if slot.active_pid is not None:
        end = f"select pg_terminate_backend({slot.active_pid});"
        return Check("slot", False, f"{SlotHolder().problem(conn, name).message}; if that is not a tailrace:", end)
    return Check("slot", True, f"{name} is there and free")


def check_stream(conn: psycopg.Connection, wanted: StreamOptions) -> list[Check]:
    """Two-phase commit, an origin and failover, as far as they are asked for."""
    version = conn.info.server_version
    try:
        plugin_options(version, wanted, ())
    except DefiniteError as error:
        return [Check("stream", False, error.message, error.hint)]
    checks = []
    if wanted.two_phase:
        checks.append(_two_phase(conn))
    if wanted.origin != "any":
        checks.append(Check("origin", True, f"{wanted.origin}: changes that came by replication are left out"))
    if wanted.failover:
        checks.append(_failover(conn, version))
    return checks


def _two_phase(conn: psycopg.Connection) -> Check:
    prepared_max = _setting(conn, "max_prepared_transactions")
    if prepared_max != "0":
        return Check("two-phase commit", True, f"up to {prepared_max} transactions can be prepared")
    fix = "alter system set max_prepared_transactions = 10;"
    return Check("two-phase commit", None, f"no transaction can be prepared on this server; {_RESTART}", fix)


def _failover(conn: psycopg.Connection, version: int) -> Check:
    if version < FAILOVER_SINCE:
        found = f"Postgres {version // 10000} has no failover slots"
        return Check("failover slot", False, found, "leave out --failover-slot, or use Postgres 17 or newer")
    standbys = _setting(conn, "synchronized_standby_slots")
    if standbys:
        return Check("failover slot", True, f"the stream waits for {standbys}")
    physical = [name for (name,) in conn.execute(QUERIES["physical_slots"])] or ["the_standby_s_slot"]
    names = sql.Literal(", ".join(physical)).as_string(None)
    fix = f"alter system set synchronized_standby_slots = {names}; select pg_reload_conf();"
    return Check(
        "failover slot", None, "the stream waits for no standby, and may be ahead of one that is promoted", fix
    )


def _setting(conn: psycopg.Connection, name: str) -> str:
    row = conn.execute(QUERIES["setting"], {"name": name}).fetchone()
    return row[0] if row is not None else ""
