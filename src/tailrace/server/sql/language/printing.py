"""Statements into text: one canonical form, which parses to an equal statement."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tailrace.server.sql.language.parsing import keywords
from tailrace.server.sql.language.statements import (
    AddTables,
    Alteration,
    AlterSource,
    CreateSources,
    DropSource,
    DropTables,
    Option,
    ResetOptions,
    Secret,
    SetOptions,
    ShowCreateSource,
    ShowSources,
    Statement,
    TableName,
    Value,
)
from tailrace.source import kinds

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_PLAIN_KEY = re.compile(rf"{_PLAIN.pattern}(\.{_PLAIN.pattern})*")


def printed(statement: Statement) -> str:
    """The statement, without a `;`. A password that was written down is in it."""
    match statement:
        case CreateSources():
            return _create(statement)
        case AlterSource(name, alteration, if_exists):
            return f"ALTER SOURCE {_given('IF EXISTS', if_exists)}{name_text(name)} {_alteration(alteration)}"
        case DropSource(names, if_exists, cascade):
            listed = ", ".join(name_text(each.name) for each in names)
            return f"DROP SOURCE {_given('IF EXISTS', if_exists)}{listed}{' CASCADE' if cascade else ''}"
        case ShowSources(like):
            return "SHOW SOURCES" + ("" if like is None else f" LIKE {text(like)}")
        case ShowCreateSource(name):
            return f"SHOW CREATE SOURCE {name_text(name)}"


def name_text(name: str) -> str:
    """A name, in double quotes where it needs them."""
    is_plain = _PLAIN.fullmatch(name) and name.upper() not in keywords()
    return name if is_plain else '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def table_text(table: TableName) -> str:
    namespace = "" if table.namespace is None else f"{name_text(table.namespace)}."
    return namespace + ("*" if table.name is None else name_text(table.name))


def _given(words: str, is_given: bool) -> str:
    return f"{words} " if is_given else ""


def _create(statement: CreateSources) -> str:
    name = "" if statement.name is None else f"{name_text(statement.name)} "
    kind = kinds.words_of(statement.kind).sql_names[0].upper()
    lines = [f"CREATE SOURCES {_given('IF NOT EXISTS', statement.if_not_exists)}{name}FROM {kind}"]
    lines += [f"{each.clause.upper()} {_value(each.value)}" for each in statement.clauses]
    if statement.namespace is not None:
        lines.append(f"NAMESPACE {text(statement.namespace)}")
    if statement.tables:
        lines.append(f"TABLES ({_tables(statement.tables)})")
    if statement.options:
        lines.append(f"WITH ({_options(statement.options)})")
    return "\n  ".join(lines)


def _alteration(alteration: Alteration) -> str:
    match alteration:
        case AddTables(tables, if_not_exists):
            return f"ADD TABLE {_given('IF NOT EXISTS', if_not_exists)}{_tables(tables)}"
        case DropTables(tables, if_exists):
            return f"DROP TABLE {_given('IF EXISTS', if_exists)}{_tables(tables)}"
        case SetOptions(options):
            return f"SET ({_options(options)})"
        case ResetOptions(keys):
            return f"RESET ({', '.join(map(_key, keys))})"


def _tables(tables: Sequence[TableName]) -> str:
    return ", ".join(map(table_text, tables))


def _options(options: Sequence[Option]) -> str:
    return ", ".join(f"{_key(each.key)} = {_value(each.value)}" for each in options)


def _key(key: str) -> str:
    return key if _PLAIN_KEY.fullmatch(key) else '"' + key.replace('"', '""') + '"'


def _value(value: Value) -> str:
    return f"SECRET {text(value.reference)}" if isinstance(value, Secret) else text(value)
