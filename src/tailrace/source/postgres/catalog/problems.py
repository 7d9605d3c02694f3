"""What keeps a table from being copied exactly, and the SQL that helps.

Publishing a table without replica identity makes the application's own updates and deletes fail,
so a table with a problem is refused before anything is changed in the source.
"""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from tailrace.model.change import PREFIX
from tailrace.model.table import TableId
from tailrace.source.door.values import Problem, SourceTable
from tailrace.source.postgres.catalog.access import Rights
from tailrace.source.postgres.catalog.tables import CatalogPart, CatalogTable, peeked, quoted, schema_of
from tailrace.source.postgres.server.connection import UnreadableName

GENERATED_SINCE = 180000
"""The server's version from which on a publication can send generated columns, and from which on one that does not
makes updates fail where such a column would have to be sent with the old row."""


def all_problems(tables: Sequence[CatalogTable], rights: Rights) -> dict[TableId, Problem | None]:
    """For each table everything that a person must do about it; None where there is nothing."""
    return {info.table: _together([*problems(info), *_lacking(info, rights)]) for info in tables}


def _lacking(info: CatalogTable, rights: Rights) -> list[Problem]:
    """What the user may not do. A grant cannot name a table whose name is not UTF-8."""
    problem = rights.problem(info) if not _unreadable(info) else None
    return [] if problem is None else [problem]


def _together(found: Sequence[Problem]) -> Problem | None:
    """A line of hint for each."""
    if not found:
        return None
    hints = list(dict.fromkeys(problem.hint for problem in found if problem.hint))
    return Problem("; ".join(problem.message for problem in found), "\n".join(hints))


def problems(info: CatalogTable) -> list[Problem]:
    """Why this table must not be published yet; empty when it may."""
    if info.obstacle is not None:
        return [Problem(f"table {info.table} is {info.obstacle}", f"leave it out: --exclude {info.table.argument}")]
    if unreadable := _unreadable(info):
        return unreadable
    found = _generated_key(info) if info.identity_key else _without_key(info)
    for part in info.parts if info.identity_key else ():
        found += _problems_of_part(part, info)
    if _hides_generated(info):
        message = f"table {info.table} has replica identity full and a generated column: its updates would fail"
        key = "" if info.identity_key else f"alter table {quoted(info.table)} add primary key (…); "
        sent = "have the column sent: --generated-columns, or in a publication of your own: alter publication … set "
        sent += "(publish_generated_columns = stored)"
        found.append(Problem(message, f"{key}alter table {quoted(info.table)} replica identity default\n{sent}"))
    return found + _name_clashes(info)


def _unreadable(info: CatalogTable) -> list[Problem]:
    """Names that are not UTF-8. No statement of ours can have one, and the lake could not be asked for it. The hints
    find the object by its number, which any client can send."""
    found = []
    named = {info.relation: info.table} | {part.relation: part.table for part in info.parts}
    for relation, table in named.items():
        if isinstance(table.namespace, UnreadableName):
            schema = f"(select relnamespace::regnamespace from pg_class where oid = {relation})"
            fix = f"'alter schema %s rename to new_name', {schema}"
            found.append(Problem(f"the name of schema {table.namespace} is not UTF-8", _execute(fix)))
        if isinstance(table.name, UnreadableName):
            fix = f"'alter table %s rename to new_name', {relation}::regclass"
            found.append(Problem(f"the name of table {table} is not UTF-8", _execute(fix)))
    for column in info.columns:
        if isinstance(column.name, UnreadableName):
            name = f"(select attname from pg_attribute where attrelid = {info.relation} and attnum = {column.number})"
            fix = f"'alter table %s rename column %I to new_name', {info.relation}::regclass, {name}"
            message = f"the name of column {column.name} of table {info.table} is not UTF-8"
            found.append(Problem(message, _execute(fix)))
    return found


def _execute(arguments: str) -> str:
    return f"do $$ begin execute format({arguments}); end $$;"


def _without_key(info: CatalogTable) -> list[Problem]:
    """Where changes carry whole rows, a table needs no key."""
    table, name = info.table, quoted(info.table)
    if not any(column.is_sent for column in info.columns):
        return [
            Problem(f"table {table} has no columns that can be copied", f"leave it out: --exclude {table.argument}")
        ]
    if info.by_inserts:
        return []
    if info.is_partitioned:
        # A partition that is made later does not take its table's identity over: its updates would fail.
        message = f"table {table} is partitioned and has no primary key"
        return [
            Problem(message, f"alter table {name} add primary key (…), or if rows are only added: {_by_inserts(info)}")
        ]
    if info.has_identity:
        return []
    if info.replica_identity == "i" or (info.replica_identity == "n" and info.primary_key):
        why = ": the index that identified its rows is gone" if info.replica_identity == "i" else ""
        identity = "default" if info.primary_key else "full"
        return [
            Problem(f"table {table} has no replica identity{why}", f"alter table {name} replica identity {identity}")
        ]
    # Two rows may have the same deferrable key until the commit: changes by key would hit the wrong one.
    why = f"the primary key of table {table} is deferrable" if info.primary_key else f"table {table} has no primary key"
    key = "or add a primary key that is not deferrable"
    hint = f"alter table {name} replica identity full, {key}, or if rows are only added: {_by_inserts(info)}"
    return [Problem(why, hint)]


def _by_inserts(info: CatalogTable) -> str:
    return f"--append-only {info.table.argument}"


def _generated_key(info: CatalogTable) -> list[Problem]:
    """Without one of its columns a key names several rows."""
    unsent = [column for column in info.columns if not column.is_sent and column.name in info.identity_key]
    if not unsent:
        return []
    if not unsent[0].generated:
        message = f"column {unsent[0].name} in the key of table {info.table} is not sent by the publication"
        return [Problem(message, "name all columns of the key in the publication's list for the table")]
    generated = [column.name for column in unsent]
    message = f"column {generated[0]} in the key of table {info.table} is generated: changes do not carry it"
    hint = "(a unique index on columns that are not null and not generated), or make a key without it"
    if info.server_version >= GENERATED_SINCE:
        hint += ", or have it sent: --generated-columns"
    return [Problem(message, f"alter table {quoted(info.table)} replica identity using index … {hint}")]


def _problems_of_part(part: CatalogPart, info: CatalogTable) -> list[Problem]:
    """A leaf partition identifies its rows by itself, whatever its table says."""
    if part.obstacle is not None:
        return [Problem(f"partition {part.table} of {info.table} is {part.obstacle}", "exclude the table")]
    if part.replica_identity == "f" or part.identity_key == info.identity_key:
        return []
    message = f"partition {part.table} of {info.table} does not identify rows as its table does"
    return [Problem(message, f"alter table {quoted(part.table)} replica identity full")]


def _hides_generated(info: CatalogTable) -> bool:
    generated = any(column.generated and not column.is_sent for column in info.columns)
    return generated and info.replica_identity == "f" and info.server_version >= GENERATED_SINCE


def _name_clashes(info: CatalogTable) -> list[Problem]:
    """A change has columns of our own beside the table's."""
    return [
        Problem(
            f"column {column.name} of table {info.table} has a name that Tailrace uses",
            f'alter table {quoted(info.table)} rename column "{column.name}" to …',
        )
        for column in info.columns
        if column.name.lower().startswith(PREFIX)
    ]


def source_tables(conn: psycopg.Connection, infos: Sequence[CatalogTable]) -> list[SourceTable]:
    """The tables as the rest sees them, each with its problems."""
    found = all_problems(infos, Rights.load(conn, infos))
    return [
        SourceTable(schema_of(info), info.rows_estimated, found[info.table], info, info.row_bytes_estimated)
        for info in peeked(conn, infos)
    ]
