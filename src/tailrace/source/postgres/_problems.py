"""What keeps a table from being copied exactly, and the SQL that helps.

Publishing a table without replica identity makes the application's own updates and deletes fail,
so a table with a problem is refused before anything is changed in the source.
"""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from tailrace.model.change import PREFIX
from tailrace.model.table import TableId
from tailrace.source.door import Problem, SourceTable
from tailrace.source.postgres._access import Rights
from tailrace.source.postgres._catalog import Part, TableInfo, peeked, quoted, schema_of

GENERATED_SINCE = 180000
"""The server's version from which on a publication can send generated columns, and from which on one that does not
makes updates fail where such a column would have to be sent with the old row."""


def first_problems(tables: Sequence[TableInfo], rights: Rights) -> dict[TableId, Problem | None]:
    """For each table the first thing that a person must do about it; None where there is nothing."""

    def first(info: TableInfo) -> Problem | None:
        found = [*problems(info), rights.problem(info)]
        return next((problem for problem in found if problem is not None), None)

    return {info.table: first(info) for info in tables}


def problems(info: TableInfo) -> list[Problem]:
    """Why this table must not be published yet; empty when it may."""
    if info.obstacle is not None:
        return [Problem(f"table {info.table} is {info.obstacle}", f"leave it out: --exclude {info.table.argument}")]
    found = _generated_key(info) if info.identity_key else _without_key(info)
    for part in info.parts if info.identity_key else ():
        found += _problems_of_part(part, info)
    if _hides_generated(info):
        message = f"table {info.table} has replica identity full and a generated column: its updates would fail"
        key = "" if info.identity_key else f"alter table {quoted(info.table)} add primary key (…); "
        found.append(Problem(message, f"{key}alter table {quoted(info.table)} replica identity default"))
    return found + _name_clashes(info)


def _without_key(info: TableInfo) -> list[Problem]:
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


def _by_inserts(info: TableInfo) -> str:
    return f"--append-only {info.table.argument}"


def _generated_key(info: TableInfo) -> list[Problem]:
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


def _problems_of_part(part: Part, info: TableInfo) -> list[Problem]:
    """A leaf partition identifies its rows by itself, whatever its table says."""
    if part.obstacle is not None:
        return [Problem(f"partition {part.table} of {info.table} is {part.obstacle}", "exclude the table")]
    if part.replica_identity == "f" or part.identity_key == info.identity_key:
        return []
    message = f"partition {part.table} of {info.table} does not identify rows as its table does"
    return [Problem(message, f"alter table {quoted(part.table)} replica identity full")]


def _hides_generated(info: TableInfo) -> bool:
    generated = any(column.generated and not column.is_sent for column in info.columns)
    return generated and info.replica_identity == "f" and info.server_version >= GENERATED_SINCE


def _name_clashes(info: TableInfo) -> list[Problem]:
    """A change has columns of our own beside the table's."""
    return [
        Problem(
            f"column {column.name} of table {info.table} has a name that Tailrace uses",
            f'alter table {quoted(info.table)} rename column "{column.name}" to …',
        )
        for column in info.columns
        if column.name.lower().startswith(PREFIX)
    ]


def source_tables(conn: psycopg.Connection, infos: Sequence[TableInfo]) -> list[SourceTable]:
    """The tables as the rest sees them, each with the first of its problems."""
    found = first_problems(infos, Rights.load(conn, infos))
    return [
        SourceTable(schema_of(info), info.rows_estimated, found[info.table], info, info.row_bytes_estimated)
        for info in peeked(conn, infos)
    ]
