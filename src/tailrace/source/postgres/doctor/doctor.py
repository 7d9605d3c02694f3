"""What stands between a database and its copy, found before anything is changed.

Every check says what it found and, where something can be done, the SQL that does it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from tailrace.errors import DefiniteError
from tailrace.source.door.tables import Check
from tailrace.source.postgres.catalog.access import Rights
from tailrace.source.postgres.catalog.chosen_columns import as_text, require_columns
from tailrace.source.postgres.catalog.publication_filters import as_sent, sent_by
from tailrace.source.postgres.catalog.signal_table import SignalTable
from tailrace.source.postgres.catalog.tables import append_only, list_tables
from tailrace.source.postgres.doctor._stream_checks import check_named_slot, check_stream
from tailrace.source.postgres.doctor._table_checks import (
    check_access,
    check_left_out,
    check_named_publication,
    check_publication,
    check_tables,
    publication_for,
)
from tailrace.source.postgres.named_sql import load
from tailrace.source.postgres.rows.watermarks import READ_ONLY, Watermarks
from tailrace.source.postgres.server.connection import CONNECTIONS_NEEDED
from tailrace.source.postgres.server.identity import STANDBY_SINCE
from tailrace.source.postgres.stream.protocol import DEFAULTS, StreamOptions
from tailrace.source.postgres.stream.slot import find_slot

QUERIES = load("doctor/doctor.sql")

VERSION_MIN = 120000
VERSION_RECOMMENDED = 140000
SLOTS_NEEDED = 2
"""The connector's own, and a temporary one while the first copy is made."""
SENDERS_NEEDED = 2
"""The same two stream."""
SENDER_TIMEOUT_MS_MIN = 10_000
_RESTART = "after this change restart the server"


@dataclass(frozen=True)
class Named:
    """What a person has named, to be used and left alone."""

    slot: str | None = None
    publication: str | None = None
    append_only: tuple[str, ...] = ()
    """Patterns for tables that are copied by their inserts."""
    signals: SignalTable | None = None
    watermarks: Watermarks = READ_ONLY
    text_columns: tuple[str, ...] = ()
    """Patterns for columns that are copied as text."""
    stream: StreamOptions = DEFAULTS
    generated: bool = False
    """Our own publication is to send generated columns."""


NOTHING_NAMED = Named()


def examine(
    conn: psycopg.Connection, include: Sequence[str], exclude: Sequence[str] = (), named: Named = NOTHING_NAMED
) -> list[Check]:
    """Every check of the server, of the user's rights and of the tables that the patterns choose."""
    server = _one(conn, "server")
    role = _one(conn, "role")
    checks = [*_server(server), *_slots(conn, server, named), _senders(server), _connections(conn, role)]
    checks += [_replication(role), *check_stream(conn, named.stream)]
    try:
        sent = sent_by(conn, named.publication, generated=named.generated)
        tables = append_only(list_tables(conn, include, exclude, by_leaves=sent.by_leaves), named.append_only)
        require_columns(tables, named.text_columns)
        tables = as_sent(as_text(tables, named.text_columns), sent)
    except DefiniteError as error:
        checks.append(Check("tables", False, error.message, error.hint))
    else:
        rights = Rights.load(conn, tables)
        checks += check_access(rights, tables)
        if named.publication is not None:
            checks += check_named_publication(conn, named.publication, tables)
        elif server["is_standby"]:
            found = "to be made on the primary; then pass --publication tailrace"
            checks.append(Check("publication", False, found, publication_for(tables)))
        else:
            checks.append(check_publication(conn, role, rights, tables))
        checks += check_tables(tables)
        checks += check_left_out(conn, include, exclude, by_leaves=sent.by_leaves)
    if named.signals is not None:
        checks.append(_signal_table(conn, named.signals, named))
    return [*checks, *_retention(server), *_idle_slots(conn)]


def _server(server: dict[str, Any]) -> list[Check]:
    version = server["version_num"]
    recent = True if version >= VERSION_RECOMMENDED else None
    old = "Postgres 14 or newer lets a table be copied in parallel"
    checks = [
        Check(
            "version",
            recent if version >= VERSION_MIN else False,
            f"Postgres {server['version']}",
            None if recent else (old if version >= VERSION_MIN else "upgrade to Postgres 12 or newer"),
        ),
        _yes(
            "wal_level",
            server["wal_level"] == "logical",
            server["wal_level"] if server["wal_level"] == "logical" else f"{server['wal_level']}; {_RESTART}",
            "alter system set wal_level = logical;",
        ),
        *_standby(server),
    ]
    if server["encoding"] == "SQL_ASCII":
        checks.append(Check("encoding", None, "SQL_ASCII: text that is not UTF-8 stops its table"))
    return checks


def _standby(server: dict[str, Any]) -> list[Check]:
    if not server["is_standby"]:
        return [Check("primary", True, "yes")]
    if server["version_num"] < STANDBY_SINCE:
        return [Check("primary", False, "a standby", "use the primary, or Postgres 16 or newer")]
    has_feedback = server["standby_feedback"] == "on"
    found = "on" if has_feedback else "off: a vacuum on the primary may cost the slot"
    fix = None if has_feedback else "alter system set hot_standby_feedback = on; select pg_reload_conf();"
    return [
        Check("primary", None, "a standby: the slot is made here, the publication on the primary"),
        Check("hot_standby_feedback", True if has_feedback else None, found, fix),
    ]


def _slots(conn: psycopg.Connection, server: dict[str, Any], named: Named) -> list[Check]:
    checks = [] if named.slot is None else [check_named_slot(conn, named.slot)]
    if any(check.ok is False for check in checks):
        return checks
    needed = SLOTS_NEEDED - (named.slot is not None and find_slot(conn, named.slot) is not None)
    free = _free("replication slots", server["slots_used"], server["slots_max"], "max_replication_slots", needed)
    return [*checks, free]


def _senders(server: dict[str, Any]) -> Check:
    return _free("wal senders", server["senders_used"], server["senders_max"], "max_wal_senders", SENDERS_NEEDED)


def _free(name: str, used: int, limit: int, setting: str, needed: int) -> Check:
    enough = limit - used >= needed
    found = f"{limit - used} of {limit} free, {needed} needed" + ("" if enough else f"; {_RESTART}")
    return _yes(name, enough, found, f"alter system set {setting} = {used + needed + 1};")


def _connections(conn: psycopg.Connection, role: dict[str, Any]) -> Check:
    """Those that the role, the database and the server have left; the fewest count."""
    user, database = (sql.Identifier(role[name]).as_string(None) for name in ("name", "database"))
    left = _one(conn, "connections")
    fixes = {
        "role": f"alter role {user} connection limit {{}};",
        "database": f"alter database {database} connection limit {{}};",
        "server": "alter system set max_connections = {};",
    }
    known = {scope: left[f"{scope}_limit"] - left[f"{scope}_used"] for scope in fixes if left[f"{scope}_limit"] >= 0}
    scope = min(known, key=lambda each: known[each])
    enough = known[scope] >= CONNECTIONS_NEEDED
    found = f"{known[scope]} left for the {scope}, at least {CONNECTIONS_NEEDED} needed"
    if not enough and scope == "server":
        found += f"; {_RESTART}"
    raised = left[f"{scope}_limit"] + left["reserved"] * (scope == "server") + CONNECTIONS_NEEDED - known[scope]
    return _yes("connections", enough, found, fixes[scope].format(raised))


def _replication(role: dict[str, Any]) -> Check:
    may = role["may_replicate"] or role["has_rds_replication"]
    user = sql.Identifier(role["name"]).as_string(None)
    fix = f"grant rds_replication to {user};" if role["is_rds"] else f"alter role {user} with replication;"
    return _yes("replication privilege", may, f"{role['name']} {'has it' if may else 'lacks it'}", fix)


def _signal_table(conn: psycopg.Connection, signals: SignalTable, named: Named) -> Check:
    problem = signals.problem(conn, named.publication, can_send_inserts=named.publication is None)
    problem = problem or named.watermarks.problem(conn)
    if problem is not None:
        return Check("signal table", False, problem.message, problem.hint)
    return Check("signal table", True, f"{signals.table} is there")


def _retention(server: dict[str, Any]) -> list[Check]:
    keep, idle = server["slot_wal_keep"], server["slot_idle_timeout"]
    timeout_ms = server["sender_timeout_ms"]
    unlimited = keep == "-1"
    return [
        Check(
            "max_slot_wal_keep_size",
            None if unlimited else True,
            "no limit: WAL fills the disk while Tailrace is stopped" if unlimited else f"{keep}, then the slot is lost",
            "alter system set max_slot_wal_keep_size = '50GB'; select pg_reload_conf();" if unlimited else None,
        ),
        Check(
            "idle_replication_slot_timeout",
            True if idle == "0" else None,
            "off" if idle == "0" else f"a stopped Tailrace loses its slot after {idle}",
            None if idle == "0" else "alter system set idle_replication_slot_timeout = 0; select pg_reload_conf();",
        ),
        Check(
            "wal_sender_timeout",
            True if timeout_ms == 0 or timeout_ms >= SENDER_TIMEOUT_MS_MIN else None,
            server["sender_timeout"],
            None
            if timeout_ms == 0 or timeout_ms >= SENDER_TIMEOUT_MS_MIN
            else "alter system set wal_sender_timeout = '60s'; select pg_reload_conf();",
        ),
    ]


def _idle_slots(conn: psycopg.Connection) -> list[Check]:
    return [_idle_slot(**slot) for slot in _rows(conn, "idle_slots")]


def _idle_slot(name: str, wal_status: str | None, held: str) -> Check:
    found = f"{name} was invalidated" if wal_status == "lost" else f"{name} holds back {held} of WAL"
    drop = f"select pg_drop_replication_slot({sql.Literal(name).as_string(None)});"
    return Check("idle slot", None, f"{found}; if nothing needs it:", drop)


def _rows(conn: psycopg.Connection, query: str, parameters: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    with conn.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(QUERIES[query], parameters).fetchall()


def _one(conn: psycopg.Connection, query: str) -> dict[str, Any]:
    (row,) = _rows(conn, query)
    return row


def _yes(name: str, ok: bool, found: str, fix: str | None) -> Check:
    return Check(name, ok, found, None if ok else fix)
