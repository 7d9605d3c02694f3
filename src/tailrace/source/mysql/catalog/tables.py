"""Which tables a server has, what they look like, and why some cannot be copied exactly.

A shape is the one that the binlog will tell of the next row, to the letter.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Any

from pymysql.connections import Connection

from tailrace.model.change import PREFIX
from tailrace.model.rows.column_names import distinct
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.source.door.values import Problem, SourceTable
from tailrace.source.mysql.catalog.declared import declared_type
from tailrace.source.mysql.events.table_map import UnknownType
from tailrace.source.mysql.server.connection import ask
from tailrace.source.mysql.server.identity import variables
from tailrace.source.mysql.stream.relations import relation_of

_HEADING = re.compile(r"^-- (\w+): .*$", re.MULTILINE)
_ENGINE = "innodb"
_CASCADES_SINCE = (9, 6)
"""From this version on MySQL logs what foreign keys do."""
_GIPK = "show_gipk_in_create_table_and_information_schema"


@dataclass(frozen=True)
class _Catalog:
    """What the server answered, by table."""

    columns: Mapping[TableId, Sequence[tuple[str, str, str, str | None]]]
    keys: Mapping[TableId, tuple[str, ...]]
    cascades: Mapping[TableId, str]
    """A constraint each, of tables whose rows the server changes and does not say so."""


def list_tables(connection: Connection[Any]) -> list[SourceTable]:
    """All that hold rows, by name, those with a problem included."""
    queries = _queries()
    known = variables(connection, "version", _GIPK, "innodb_native_foreign_keys")
    if _GIPK in known:
        # A key that the server has made itself is in the binlog, shown or not.
        ask(connection, f"set session {_GIPK} = on")
    catalog = _Catalog(
        _grouped(ask(connection, queries["columns"])),
        {table: tuple(name for (name,) in rows) for table, rows in _grouped(ask(connection, queries["keys"])).items()},
        {} if _logs_cascades(known) else _cascades(ask(connection, queries["cascades"])),
    )
    found = [_described(row, catalog) for row in ask(connection, queries["tables"])]
    return _with_collisions(found)


def _queries() -> dict[str, str]:
    _, *parts = _HEADING.split((files(__package__) / "tables.sql").read_text(encoding="utf-8"))
    return {name: body.strip().removesuffix(";") for name, body in zip(parts[::2], parts[1::2], strict=True)}


def _grouped(rows: list[tuple[Any, ...]]) -> dict[TableId, list[Any]]:
    found = defaultdict[TableId, list[Any]](list)
    for namespace, name, *rest in rows:
        found[TableId(namespace, name)].append(tuple(rest))
    return found


def _cascades(rows: list[tuple[Any, ...]]) -> dict[TableId, str]:
    return {TableId(namespace, name): constraint for namespace, name, constraint in reversed(rows)}


def _logs_cascades(known: Mapping[str, str]) -> bool:
    version = known["version"]
    number = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    is_native = known.get("innodb_native_foreign_keys", "OFF").upper() in ("ON", "1")
    return "mariadb" not in version.lower() and number >= _CASCADES_SINCE and not is_native


def _described(row: tuple[Any, ...], catalog: _Catalog) -> SourceTable:
    namespace, name, kind, engine, rows, row_bytes = row
    table = TableId(namespace, name)
    types = [(each[0], declared_type(*each[1:])) for each in catalog.columns.get(table, ())]
    columns = tuple(
        Column(column, "string", type_.reason)
        if isinstance(type_, UnknownType)
        else Column(column, type_.lake_type, str(type_))
        for column, type_ in types
    )
    schema = distinct(TableSchema(table, relation_of(table), columns, catalog.keys.get(table, ())))
    unknown = next(((column, type_) for column, type_ in types if isinstance(type_, UnknownType)), None)
    problem = _problem(table, kind, engine, catalog.cascades.get(table)) or _column_problem(table, types, unknown)
    return SourceTable(schema, int(rows), problem, row_bytes_estimated=int(row_bytes) or None)


def _problem(table: TableId, kind: str, engine: str, cascade: str | None) -> Problem | None:
    quoted = ".".join(f"`{part.replace('`', '``')}`" for part in (table.namespace, table.name))
    if kind == "SYSTEM VERSIONED":
        return Problem(f"table {table} keeps old versions of its rows", f"alter table {quoted} drop system versioning")
    if engine.lower() != _ENGINE:
        return Problem(
            f"table {table} is of engine {engine or 'none'}, which has no transactions",
            f"alter table {quoted} engine = InnoDB",
        )
    if cascade is not None:
        return Problem(
            f"foreign key {cascade} changes rows of table {table}, and the server does not log that",
            f"alter table {quoted} drop foreign key `{cascade}`, and add it again with restrict in place of cascade; "
            "MySQL 9.6 and later log it",
        )
    return None


def _column_problem(
    table: TableId, types: Sequence[tuple[str, Any]], unknown: tuple[str, UnknownType] | None
) -> Problem | None:
    if unknown is not None:
        return Problem(f"table {table}, column {unknown[0]}: {unknown[1].reason}", "leave the table out, or change it")
    ours = next((name for name, _ in types if name.lower().startswith(PREFIX)), None)
    if ours is not None:
        return Problem(f"table {table} has a column {ours}, a name that is ours", "rename the column")
    return None


def _with_collisions(tables: list[SourceTable]) -> list[SourceTable]:
    """Of two tables whose numbers in the log would be the same, neither can be told from the other."""
    by_number = defaultdict[int, list[TableId]](list)
    for table in tables:
        by_number[table.schema.relation].append(table.table)

    def checked(table: SourceTable) -> SourceTable:
        others = [str(each) for each in by_number[table.schema.relation] if each != table.table]
        if not others or table.problem is not None:
            return table
        message = f"tables {table.table} and {others[0]} would have the same number in the log"
        return replace(table, problem=Problem(message, f"rename {table.table} or {others[0]}"))

    return [checked(table) for table in tables]
