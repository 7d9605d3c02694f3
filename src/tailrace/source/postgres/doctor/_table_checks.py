"""What stands between some tables and their copy: the user's rights, the publication, the tables themselves.

A missing right is told for all tables at once, with all that must be granted. What is wrong with one table's definition
is that table's alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import sql

from tailrace.errors import DefiniteError
from tailrace.model.table import TableId
from tailrace.source.door.tables import Check
from tailrace.source.postgres.catalog.access import Rights, hidden_rows
from tailrace.source.postgres.catalog.problems import problems
from tailrace.source.postgres.catalog.publication import require_publication, use_publication
from tailrace.source.postgres.catalog.tables import CatalogTable, candidates, quoted, schema_of
from tailrace.source.postgres.named_sql import load

QUERIES = load("doctor/doctor.sql")
NAMES_SHOWN_MAX = 5
GRANTS_SHOWN_MAX = 20
"""More tables than this are granted by their schemas."""
_TEXT_TYPES = ("text", "character", "uuid", "json", "name", "citext", '"char"')


def check_access(rights: Rights, tables: Sequence[CatalogTable]) -> list[Check]:
    """Whether the user can read every row."""
    grants = {info.table: rights.missing_grants(info) for info in tables}
    unreadable = [str(table) for table, missing in grants.items() if missing]
    fixes = list(dict.fromkeys(grant for missing in grants.values() for grant in missing))
    if len(fixes) > GRANTS_SHOWN_MAX:
        fixes = rights.grants_by_schema([info for info in tables if grants[info.table]])
    found = f"{rights.user} may not read {_listed(unreadable)}" if unreadable else f"to {_tables_text(tables)}"
    some = len(unreadable) < len(tables)
    checks = [Check("read access", not unreadable, found, "\n".join(fixes) or None, leaves_out=some)]
    hidden = [info.table for info in tables if rights.hides_rows(info)]
    if hidden:
        fix, some = hidden_rows(rights.user, hidden[0]).hint, len(hidden) < len(tables)
        checks.append(Check("row security", False, f"hides rows of {_listed(map(str, hidden))}", fix, leaves_out=some))
    return checks


def check_publication(
    conn: psycopg.Connection, role: dict[str, Any], rights: Rights, tables: Sequence[CatalogTable]
) -> Check:
    """The user can make the publication. One that there is already is used only where a person names it."""
    foreign = [info for info in tables if not rights.owns(info)]
    if role["may_create"] and not foreign:
        return Check("publication", True, f"{role['name']} may create it")
    if not foreign:
        database, user = (sql.Identifier(role[name]).as_string(None) for name in ("database", "name"))
        fix = f"grant create on database {database} to {user};"
        return Check("publication", False, f"{role['name']} may not create one in {role['database']}", fix)
    why = f"{role['name']} does not own {_listed(str(info.table) for info in foreign)}"
    some = role["may_create"] and len(foreign) < len(tables)
    sendable = _sendable(tables)
    existing = _sending(conn, sendable) if sendable else None
    if existing is not None:
        found = f"{why}; publication {existing} sends the tables: pass --publication {existing}"
        return Check("publication", False, found, leaves_out=some)
    found = f"{why}; let the owner create it and pass --publication tailrace"
    return Check("publication", False, found, publication_for(tables), leaves_out=some)


def publication_for(tables: Sequence[CatalogTable]) -> str:
    """What makes a publication of them."""
    tables_sql = ", ".join(f"only {quoted(table)}" for table in _sendable(tables))
    return f"create publication tailrace for table {tables_sql} with (publish_via_partition_root = true);"


def _sendable(tables: Sequence[CatalogTable]) -> list[TableId]:
    """A publication that sends a table without identity would make the application's own updates fail."""
    return [info.table for info in tables if not problems(info) and not info.by_inserts]


def _sending(conn: psycopg.Connection, tables: Sequence[TableId]) -> str | None:
    """A publication that sends every change of all rows and columns of all these tables."""
    for (name,) in conn.execute(QUERIES["publications"]).fetchall():
        with suppress(DefiniteError):
            if require_publication(conn, name).tables.issuperset(tables):
                return str(name)
    return None


def check_named_publication(conn: psycopg.Connection, name: str, tables: Sequence[CatalogTable]) -> list[Check]:
    """The publication that a person has named sends the tables."""
    try:
        require_publication(conn, name)
    except DefiniteError as error:
        return [Check("publication", False, error.message, error.hint)]
    refused = use_publication(conn, name, [info.table for info in tables]).refused
    found = [Check("table", False, problem.message, problem.hint, leaves_out=True) for problem in refused.values()]
    return found or [Check("publication", True, f"{name} has {_tables_text(tables)}")]


def check_tables(tables: Sequence[CatalogTable]) -> list[Check]:
    """What each table's own definition keeps from being copied, or from being copied as it is."""
    found = [problem for info in tables for problem in problems(info)]
    checks = [Check("table", False, problem.message, problem.hint, leaves_out=True) for problem in found]
    if not found:
        has = "has" if len(tables) == 1 else "have"
        checks = [Check("replica identity", True, f"{_tables_text(tables)} {has} a usable replica identity")]
    by_inserts = [str(info.table) for info in tables if info.by_inserts]
    if by_inserts:
        found_text = f"{_listed(by_inserts)}: an update or a delete there has the table copied again"
        checks.append(Check("copied by inserts", None, found_text))
    as_text = [
        f"{info.table}.{column.name} ({column.type.source_type})"
        for info in tables
        for column in info.columns
        if (column.is_text or column.type.lake() == "string")
        and column.decimal is None
        and not _is_text(column.type.source_type)
    ]
    if as_text:
        checks.append(Check("copied as text", True, _listed(as_text)))
    renamed = [
        f"{info.table}.{column.in_source} is {column.name} there"
        for info in tables
        for column in schema_of(info).columns
        if column.source_name
    ]
    if renamed:
        checks.append(Check("names in the lake", None, f"another name differs only in case: {_listed(renamed)}"))
    generated = [
        f"{info.table}.{column.name}"
        for info in tables
        for column in info.columns
        if column.generated and not column.is_sent
    ]
    if generated:
        checks.append(Check("generated columns", None, f"not copied: {_listed(generated)}"))
    return checks


def check_left_out(
    conn: psycopg.Connection, include: Sequence[str], exclude: Sequence[str], *, by_leaves: bool
) -> list[Check]:
    """Tables that the patterns match and that are not copied all the same."""
    named = [
        (candidate.table, reason)
        for candidate in candidates(conn, by_leaves=by_leaves)
        if (reason := candidate.left_out(include)) is not None
        and reason.startswith(("unlogged", "a foreign", "part of", "sent as"))
        and (not include or any(candidate.table.matches(pattern) for pattern in include))
        and not any(candidate.table.matches(pattern) for pattern in exclude)
    ]
    return [Check("not copied", None, f"{table} is {reason}") for table, reason in named]


def _is_text(source_type: str) -> bool:
    """Whether a reader of the source expects text, too."""
    return source_type.startswith(_TEXT_TYPES) and not source_type.endswith("[]")


def _listed(names: Iterable[str]) -> str:
    shown = list(names)
    more = f" and {len(shown) - NAMES_SHOWN_MAX} more" if len(shown) > NAMES_SHOWN_MAX else ""
    return ", ".join(shown[:NAMES_SHOWN_MAX]) + more


def _tables_text(tables: Sequence[CatalogTable]) -> str:
    return "1 table" if len(tables) == 1 else f"all {len(tables)} tables"
