"""Tables in a statement and in Debezium's lists: `public.orders` is the expression `public\\.orders`.

Two names of tables have two expressions. An expression says no more and no less than the name, but for what Debezium
adds to every expression: it is compared in any case of letters, and the namespace ends at the first dot.
"""

from __future__ import annotations

import re

from tailrace.configuration.tables import chosen, matched
from tailrace.model.table import TableId
from tailrace.server.sql.statements import TableName

DEFAULT_NAMESPACE = "public"
_ITEM = re.compile(r"(?:\\.|[^\\,])*\\?", re.DOTALL)
_TOKEN = re.compile(
    r"\\(?P<escaped>[^A-Za-z0-9\"])|(?P<all>\.\*)|(?P<dot>\.)|(?P<plain>[^\\\[\](){}*+?|^$\"])", re.DOTALL
)


def items(text: str) -> list[str]:
    """The expressions of a list."""
    return [item.strip() for item in _ITEM.findall(text) if item.strip()]


def placed(table: TableName, namespace: str | None) -> TableName:
    """With its namespace: its own, the statement's, or `public`."""
    own = table.namespace if table.namespace is not None else namespace
    return TableName(DEFAULT_NAMESPACE if own is None else own, table.name, table.place)


def expression(table: TableName) -> str:
    """Of a table that has its namespace."""
    name = ".*" if table.name is None else _escaped(table.name)
    return rf"{_escaped(table.namespace or DEFAULT_NAMESPACE)}\.{name}"


def table_of(item: str) -> TableName | None:
    """The table, or all tables of the namespace, that an expression names; None where it is more than that."""
    tokens = [(found.lastgroup, found[found.lastgroup or 0]) for found in _TOKEN.finditer(item)]
    if sum(len(found.group()) for found in _TOKEN.finditer(item)) != len(item):
        return None
    dots = [at for at, token in enumerate(tokens) if token == ("escaped", ".")]
    wild = [at for at, (kind, _) in enumerate(tokens) if kind == "dot"]
    if not dots and len(wild) == 1:
        # Debezium's own examples leave the backslash out, and so it is read.
        dots, wild = wild, []
    if not dots or wild:
        return None
    namespace, rest = tokens[: dots[0]], tokens[dots[0] + 1 :]
    is_all = [kind for kind, _ in rest] == ["all"]
    if not namespace or not rest or any(kind == "all" for kind, _ in (namespace if is_all else tokens)):
        return None
    return TableName(_text(namespace), None if is_all else _text(rest))


def includes(item: str, table: TableName) -> bool:
    """Whether an expression of `table.include.list` chooses a table."""
    return _matches(chosen(item, lambda _: None), item, table)


def excludes(item: str, table: TableName) -> bool:
    """Whether an expression of `table.exclude.list` leaves a table out."""
    return _matches(matched(item), item, table)


def _matches(patterns: list[str], item: str, table: TableName) -> bool:
    if table.name is None:
        return item in (expression(table), ".*", r".*\..*")
    named = TableId(table.namespace or DEFAULT_NAMESPACE, table.name)
    return any(named.matches(pattern) for pattern in patterns)


def _escaped(name: str) -> str:
    return "".join(each if each.isalnum() or each == "_" else f"\\{each}" for each in name)


def _text(tokens: list[tuple[str | None, str]]) -> str:
    return "".join(text for _, text in tokens)
