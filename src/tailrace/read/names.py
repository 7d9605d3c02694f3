"""Table names in queries: as in the source, `public.orders` or `orders`.

Temporary views have no namespaces and fold case, in Spark and in DuckDB. So a view is called `public.orders` as one
word, and a query's names are put into the engine's quotes before it runs. A short name that several tables have, in any
case, is none's. Tables whose full names differ only in case have numbered views, and are meant by their full names,
where a name without quotes is in lower case, as in the source. Only names of known tables are touched; the rest of the
query stays as the user wrote it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sqlglot import exp, parse
from sqlglot.errors import SqlglotError

from tailrace.errors import DefiniteError
from tailrace.model.table import TableId

# What the parser does not know is left to the engine: its warning is for those who set up logging.
logging.getLogger("sqlglot").addHandler(logging.NullHandler())

Edit = tuple[int, int, str]
"""Where a name begins and ends in the query, and what to write there."""


class Dialect(StrEnum):
    """Whose SQL a query is, by sqlglot's name for it."""

    SPARK = "spark"
    DUCKDB = "duckdb"

    def quote(self, name: str) -> str:
        """A name as this SQL takes it, whatever it contains."""
        mark = "`" if self is Dialect.SPARK else '"'
        return mark + name.replace(mark, mark * 2) + mark


@dataclass(frozen=True)
class NamedQuery:
    """A query in the words of the views."""

    text: str
    tables: list[TableId]
    """Those that it may mean."""


class TableNames:
    """What the tables of a lake are called."""

    def __init__(self, tables: Iterable[TableId], dialect: Dialect) -> None:
        self._dialect = dialect
        self._by_full: dict[str, list[TableId]] = defaultdict(list)
        self._by_short: dict[str, list[TableId]] = defaultdict(list)
        for table in sorted(tables):
            self._by_full[str(table).lower()].append(table)
            if "." not in table.name:
                # One word with a dot is a full name.
                self._by_short[table.name.lower()].append(table)

    def views(self, table: TableId) -> list[str]:
        """The views that show a table: by its full name, and by its short one if only it has that."""
        has_short = self._by_short.get(table.name.lower()) == [table]
        return [self._view(table), table.name] if has_short else [self._view(table)]

    def _view(self, table: TableId) -> str:
        """By its full name. Those that differ only in case have numbers after them, which no full name has."""
        twins = self._by_full[str(table).lower()]
        return str(table) if len(twins) == 1 else f"{table}.{twins.index(table) + 1}"

    @property
    def all(self) -> set[str]:
        """Every name, in lower case, also those that several tables have."""
        return {*self._by_full, *self._by_short}

    def read(self, query: str) -> NamedQuery | None:
        """None if the query cannot be understood here. A definite error where it could mean several tables."""
        try:
            statements = [statement for statement in parse(query, dialect=self._dialect) if statement]
        except SqlglotError:
            return None
        if any(isinstance(statement, exp.Command) for statement in statements):
            return None
        tables: dict[TableId, None] = {}
        edits: list[Edit] = []
        for statement in statements:
            for reference, table in self._meant(statement):
                tables[table] = None
                edits += self._table_edit(reference, table)
            edits += self._column_edits(statement)
        for start, end, text in sorted(edits, reverse=True):
            query = query[:start] + text + query[end:]
        return NamedQuery(query, list(tables))

    def _meant(self, statement: exp.Expr) -> Iterator[tuple[exp.Table, TableId]]:
        own = {cte.alias.lower() for cte in statement.find_all(exp.CTE)}
        for reference in statement.find_all(exp.Table):
            if reference.catalog:
                continue
            written = str(TableId(reference.db, reference.name)) if reference.db else reference.name
            tables = self._by_full.get(written.lower()) or self._by_short.get(written.lower(), [])
            exact = [table for table in tables if str(table) == _as_in_source(reference)] or tables
            if len(exact) > 1 and written.lower() not in own:
                raise self._ambiguous(written, exact)
            if len(exact) == 1:
                yield reference, exact[0]

    def _column_edits(self, statement: exp.Expr) -> Iterator[Edit]:
        """`public.orders.id` is `orders.id` to an engine."""
        for column in statement.find_all(exp.Column):
            namespace, table = column.args.get("db"), column.args.get("table")
            if namespace is None or table is None or column.catalog:
                continue
            if str(TableId(column.db, column.table)).lower() in self._by_full:
                yield *_span(namespace, table), self._dialect.quote(column.table)

    def _table_edit(self, reference: exp.Table, table: TableId) -> Iterator[Edit]:
        """One word is a view's name already, unless another table has it in another case."""
        if reference.db or self._view(table) != str(table):
            is_named = reference.alias or isinstance(reference.parent, exp.Describe | exp.Summarize)
            alias = "" if is_named else f" as {self._dialect.quote(reference.name)}"
            first = reference.args["db"] if reference.db else reference.this
            yield *_span(first, reference.this), self._dialect.quote(self._view(table)) + alias

    def _ambiguous(self, written: str, tables: Sequence[TableId]) -> DefiniteError:
        quote = self._dialect.quote
        listed = ", ".join(f"{quote(table.namespace)}.{quote(table.name)}" for table in tables)
        return DefiniteError(f"several tables are called {written}", f"write one of {listed}")


def _as_in_source(reference: exp.Table) -> str:
    """The full name that a query has for a table, in lower case where it is not quoted."""
    parts = [part for part in (reference.args.get("db"), reference.this) if part is not None]
    names = [part.name if part.args.get("quoted") else part.name.lower() for part in parts]
    return str(TableId(*names)) if len(names) > 1 else names[0]


def _span(first: exp.Expr, last: exp.Expr) -> tuple[int, int]:
    return int(first.meta["start"]), int(last.meta["end"]) + 1
