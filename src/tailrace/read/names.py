"""Table names in queries: as in the source, `public.orders` or `orders`.

Spark's temporary views have no namespaces, so a view is called `public.orders` as one word, and a
query's names are put into backticks before it runs. Only names of known tables are touched; the
rest of the query stays as the user wrote it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from sqlglot import exp, parse
from sqlglot.errors import SqlglotError


def short_names(tables: Iterable[str]) -> dict[str, str]:
    """Names without their namespace, where only one table has it, and the table each stands for."""
    tables = list(tables)
    counts = Counter(name.partition(".")[2] for name in tables)
    return {name.partition(".")[2]: name for name in tables if counts[name.partition(".")[2]] == 1}


def named_tables(query: str, tables: Iterable[str]) -> list[str]:
    """Those of `tables` that the query may mean, by full or short name, in any case; all if it cannot be parsed."""
    known = list(tables)
    try:
        statements = parse(query, dialect="spark")
    except SqlglotError:
        return known
    used = {_written(table).lower() for each in statements if each for table in each.find_all(exp.Table)}
    return [name for name in known if name.lower() in used or name.partition(".")[2].lower() in used]


def _written(table: exp.Table) -> str:
    return f"{table.db}.{table.name}" if table.db else table.name


def with_view_names(query: str, tables: Iterable[str]) -> str:
    """The query with `namespace.name` written as the one-word view it is here."""
    try:
        statements = parse(query, dialect="spark")
    except SqlglotError:
        # Spark understands more than the parser here, and has the better error message.
        return query
    known = set(tables)
    found = [edit for statement in statements if statement for edit in _edits(statement, known)]
    for start, end, text in sorted(found, reverse=True):
        query = query[:start] + text + query[end:]
    return query


def _edits(statement: exp.Expr, tables: set[str]) -> Iterator[tuple[int, int, str]]:
    for table in statement.find_all(exp.Table):
        name = f"{table.db}.{table.name}"
        if table.db and name in tables:
            alias = "" if table.alias else f" as {_quoted(table.name)}"
            yield *_span(table.args["db"], table.this), f"{_quoted(name)}{alias}"
    for column in statement.find_all(exp.Column):
        namespace, table_part = column.args.get("db"), column.args.get("table")
        if namespace is not None and table_part is not None and f"{column.db}.{column.table}" in tables:
            yield *_span(namespace, table_part), _quoted(column.table)


def _span(first: exp.Expr, last: exp.Expr) -> tuple[int, int]:
    return int(first.meta["start"]), int(last.meta["end"]) + 1


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
