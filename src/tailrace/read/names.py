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

from tailrace.errors import DefiniteError


def short_names(tables: Iterable[str]) -> dict[str, str]:
    """Names without their namespace, and the table each stands for: where only one table has it, in any case, and it is
    no table's whole name."""
    tables = list(tables)
    counts = Counter(_short(name).lower() for name in tables) + Counter(name.lower() for name in tables)
    return {_short(name): name for name in tables if counts[_short(name).lower()] == 1}


def _short(name: str) -> str:
    return name.partition(".")[2]


def named_tables(query: str, tables: Iterable[str]) -> list[str]:
    """Those of `tables` that the query may mean, by full or short name, in any case; all if it cannot be parsed."""
    known = list(tables)
    try:
        statements = parse(query, dialect="spark")
    except SqlglotError:
        return known
    used = {_written(table).lower() for each in statements if each for table in each.find_all(exp.Table)}
    used -= {part.alias.lower() for each in statements if each for part in each.find_all(exp.CTE)}
    whole = {name.lower() for name in known} & used
    short = {short.lower(): name for short, name in short_names(known).items()}
    for name in used - whole - short.keys():
        _require_one(name, [each for each in known if _short(each).lower() == name])
    return [name for name in known if name.lower() in whole or name in {short.get(each) for each in used - whole}]


def _require_one(name: str, candidates: list[str]) -> None:
    """A definite error for a short name that several tables have."""
    if len(candidates) > 1:
        raise DefiniteError(f"several tables are called {name}", f"write the whole name: {' or '.join(candidates)}")


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
