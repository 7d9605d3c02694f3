"""What stands between a database and its copy, found before anything is changed.

Every check says what it found and, where something can be done, the SQL that does it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from tailrace.errors import DefiniteError
from tailrace.source.door import Check
from tailrace.source.postgres._access import Rights, hidden_rows
from tailrace.source.postgres._catalog import TableInfo, candidates, list_tables, quoted
from tailrace.source.postgres._patterns import matches
from tailrace.source.postgres._problems import clashes, problems
from tailrace.source.postgres._queries import load

QUERIES = load("doctor.sql")

VERSION_MIN = 120000
VERSION_RECOMMENDED = 140000
SLOTS_NEEDED = 2
"""The connector's own, and a temporary one while the first copy is made."""
SENDER_TIMEOUT_MS_MIN = 10_000
NAMES_SHOWN_MAX = 5
_RESTART = "after this change restart the server"
_TEXT_TYPES = ("text", "character", "uuid", "json", "name", "citext", '"char"')


def examine(conn: psycopg.Connection, include: Sequence[str], exclude: Sequence[str] = ()) -> list[Check]:
    """Every check of the server, of the user's rights and of the tables that the patterns choose."""
    server = _one(conn, "server")
    role = _one(conn, "role")
    checks = [*_server(server), *_capacity(server), _replication(role)]
    try:
        tables = list_tables(conn, include, exclude)
    except DefiniteError as error:
        checks.append(Check("tables", False, error.message, error.hint))
    else:
        rights = Rights.load(conn, tables)
        checks += _access(rights, tables)
        checks.append(_publication(conn, role, rights, tables))
        checks += _tables(tables)
        checks += _left_out(conn, include, exclude)
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
        _yes("primary", not server["is_standby"], "a standby" if server["is_standby"] else "yes", "use the primary"),
    ]
    if server["encoding"] == "SQL_ASCII":
        checks.append(Check("encoding", None, "SQL_ASCII: text that is not UTF-8 stops its table"))
    return checks


def _capacity(server: dict[str, Any]) -> list[Check]:
    return [
        _free("replication slots", server["slots_used"], server["slots_max"], "max_replication_slots"),
        _free("wal senders", server["senders_used"], server["senders_max"], "max_wal_senders"),
    ]


def _free(name: str, used: int, limit: int, setting: str) -> Check:
    enough = limit - used >= SLOTS_NEEDED
    found = f"{limit - used} of {limit} free, {SLOTS_NEEDED} needed" + ("" if enough else f"; {_RESTART}")
    return _yes(name, enough, found, f"alter system set {setting} = {used + SLOTS_NEEDED + 1};")


def _replication(role: dict[str, Any]) -> Check:
    may = role["may_replicate"] or role["has_rds_replication"]
    user = sql.Identifier(role["name"]).as_string(None)
    fix = f"grant rds_replication to {user};" if role["is_rds"] else f"alter role {user} with replication;"
    return _yes("replication privilege", may, f"{role['name']} {'has it' if may else 'lacks it'}", fix)


def _access(rights: Rights, tables: Sequence[TableInfo]) -> list[Check]:
    grants = {info.table: rights.missing_grants(info) for info in tables}
    unreadable = [str(table) for table, missing in grants.items() if missing]
    fixes = list(dict.fromkeys(grant for missing in grants.values() for grant in missing))
    found = f"not to {_listed(unreadable)}" if unreadable else f"to {_tables_text(tables)}"
    checks = [_yes("read access", not unreadable, found, _lines(fixes))]
    hidden = [info.table for info in tables if rights.hides_rows(info)]
    if hidden:
        fix = hidden_rows(rights.user, hidden[0]).hint
        checks.append(Check("row security", False, f"hides rows of {_listed(map(str, hidden))}", fix))
    return checks


def _publication(conn: psycopg.Connection, role: dict[str, Any], rights: Rights, tables: Sequence[TableInfo]) -> Check:
    """The user can make the publication, or there is one that can be used."""
    wanted = [info.table for info in tables]
    parameters = {"namespaces": [table.namespace for table in wanted], "names": [table.name for table in wanted]}
    existing = [name for (name,) in conn.execute(QUERIES["publications"], parameters)]
    if existing:
        return Check("publication", True, f"{existing[0]} has the tables")
    foreign = [info for info in tables if not rights.owns(info)]
    if role["may_create"] and not foreign:
        return Check("publication", True, f"{role['name']} may create it")
    why = f"{role['name']} does not own {_listed(str(info.table) for info in foreign)}"
    if not role["may_create"]:
        why = f"{role['name']} may not create objects in {role['database']}"
    tables_sql = ", ".join(map(quoted, wanted))
    create = f"create publication tailrace for table {tables_sql} with (publish_via_partition_root = true);"
    return Check("publication", False, f"{why}; let the owner create it and pass --publication tailrace", create)


def _tables(tables: Sequence[TableInfo]) -> list[Check]:
    found = [problem for info in tables for problem in problems(info)]
    found += clashes([info.table for info in tables]).values()
    checks = [Check("table", False, problem.message, problem.hint) for problem in found]
    if not found:
        checks = [Check("replica identity", True, f"{_tables_text(tables)} can identify their rows")]
    as_text = [
        f"{info.table}.{column.name} ({column.type.source_type})"
        for info in tables
        for column in info.columns
        if column.type.lake == "string" and not _is_text(column.type.source_type)
    ]
    if as_text:
        checks.append(Check("copied as text", True, _listed(as_text)))
    generated = [f"{info.table}.{column.name}" for info in tables for column in info.columns if column.is_generated]
    if generated:
        checks.append(Check("generated columns", None, f"not copied: {_listed(generated)}"))
    return checks


def _is_text(source_type: str) -> bool:
    """Whether a reader of the source expects text, too."""
    return source_type.startswith(_TEXT_TYPES) and not source_type.endswith("[]")


def _left_out(conn: psycopg.Connection, include: Sequence[str], exclude: Sequence[str]) -> list[Check]:
    """Tables that the patterns name and that have no changes in the server's log."""
    named = [
        candidate
        for candidate in candidates(conn)
        if candidate.obstacle is not None
        and candidate.obstacle.startswith(("unlogged", "a foreign"))
        and (not include or any(matches(pattern, candidate.table) for pattern in include))
        and not any(matches(pattern, candidate.table) for pattern in exclude)
    ]
    return [Check("not copied", None, f"{candidate.table} is {candidate.obstacle}") for candidate in named]


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


def _lines(statements: Sequence[str]) -> str | None:
    return "\n".join(statements) or None


def _listed(names: Iterable[str]) -> str:
    shown = list(names)
    more = f" and {len(shown) - NAMES_SHOWN_MAX} more" if len(shown) > NAMES_SHOWN_MAX else ""
    return ", ".join(shown[:NAMES_SHOWN_MAX]) + more


def _tables_text(tables: Sequence[TableInfo]) -> str:
    return "1 table" if len(tables) == 1 else f"all {len(tables)} tables"
