"""Tables in a statement and in Debezium's lists: `public.orders` is the expression `public\\.orders`.

Two names of tables have two expressions. An expression says no more and no less than the name, but for what Debezium
adds to every expression: it is compared in any case of letters. The namespace is taken to end at the first dot.
"""

from __future__ import annotations

from tailrace.configuration.tables import matched
from tailrace.model.table import TableId
from tailrace.model.table_pattern import ExpressionError, escaped, parse_expression
from tailrace.server.sql.language.statements import TableName


def placed(table: TableName, namespace: str) -> TableName:
    """With its namespace: its own, or the one that is meant where none is given."""
    return TableName(namespace if table.namespace is None else table.namespace, table.name, table.place)


def expression(table: TableName) -> str:
    """Of a table that has its namespace."""
    name = ".*" if table.name is None else escaped(table.name)
    return rf"{escaped(table.namespace or '')}\.{name}"


def table_of(item: str) -> TableName | None:
    """The table, or all tables of the namespace, that an expression names; None where it is more than that."""
    is_all = item.endswith(".*")
    try:
        (named,) = parse_expression(item.removesuffix(".*"))
    except (ExpressionError, ValueError):
        return None
    namespace, _, name = (named.literal or "").partition(".")
    if not namespace or is_all == bool(name) or "." not in (named.literal or ""):
        return None
    return TableName(namespace, name or None)


def matches(item: str, table: TableName) -> bool:
    """Whether an expression of a list means a table."""
    if table.name is None:
        return item in (expression(table), ".*", r".*\..*")
    named = TableId(table.namespace or "", table.name)
    return any(named.matches(pattern) for pattern in matched(item))
