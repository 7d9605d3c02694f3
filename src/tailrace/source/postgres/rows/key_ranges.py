"""Chunks in the order of the key: what a table is read by when it is read a little at a time.

A cursor has the texts of a row's key columns as the server prints them, and a chunk the rows after one cursor and up to
another. The server alone orders, compares and casts: `(a, b) > ('7'::int4, 'x'::text)`, by the types and collations of
the columns. Where that order depends on a library of the server's machine, a cursor ends with the library's version:
after another one, the cursor stands nowhere, and the table is read from the start.

A table may be ordered by other columns than its key. Where those of several rows are equal, a chunk has
all of these rows.

A partitioned table is read through its root, which has the key and the order of all its rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from tailrace.errors import DefiniteError, ResyncError
from tailrace.model.table import TableId, TableSchema
from tailrace.source.door.rows import Cursor
from tailrace.source.door.values import SourceTable
from tailrace.source.postgres.named_sql import load
from tailrace.source.postgres.rows.chunks import identifier, look_in

QUERIES = load("rows/key_ranges.sql")
SCAN_ROWS_MAX = 1_000_000
"""A table with more rows is not read by columns that no index has in order: every window would read all of it."""
STEPS_MAX = 16
"""Up to this many chunks are found one by one; more of them by numbering all rows."""
_COMMA = sql.SQL(", ")


@dataclass(frozen=True)
class KeyColumn:
    """A column to order by. Names are namespace and name."""

    name: str
    type: tuple[str, str]
    """Without a modifier, and for a domain the type it is made of: a value that is there passes no check again."""
    collation: tuple[str, str] | None
    """None where it is the type's own."""
    version: str | None = None
    """Of the library that orders its texts; None where none does, or the server cannot tell."""

    def literal(self, text: str) -> sql.Composed:
        value = sql.SQL("{}::{}").format(text, sql.Identifier(*self.type))
        if self.collation is None:
            return value
        return sql.SQL("{} collate {}").format(value, sql.Identifier(*self.collation))


@dataclass(frozen=True)
class KeyOrder:
    """A table and what its rows are ordered by."""

    table: TableId
    is_partitioned: bool
    columns: tuple[KeyColumn, ...]
    sent: str | None = None
    """Which of its rows are copied, in SQL; None: all."""
    has_index: bool = True
    """It is ordered by its key, which has an index. By other columns, there may be none."""

    @property
    def namespaces(self) -> list[str]:
        """A type that came with an extension has its operators beside it."""
        return sorted({column.type[0] for column in self.columns} - {"pg_catalog"})

    @property
    def version(self) -> str | None:
        """What the order depends on besides the rows; None for nothing."""
        found = [f"{column.name} {column.version}" for column in self.columns if column.version is not None]
        return ", ".join(found) or None

    def cursor(self, texts: Sequence[str]) -> Cursor:
        return [*texts] if self.version is None else [*texts, self.version]

    def texts(self, cursor: Cursor) -> Cursor:
        """`ResyncError` for a cursor of another order than this one. One without a version is of an earlier state of
        Tailrace."""
        count = len(self.columns)
        if len(cursor) > count and cursor[count] != self.version:
            raise ResyncError.of(self.table, "the server orders its key otherwise than when its copy began")
        return cursor[:count]

    def where(self, condition: sql.Composable) -> sql.Composed:
        only = sql.SQL("" if self.is_partitioned else "only ")
        return sql.SQL("{}{} where {}").format(only, identifier(self.table), condition)

    def between(self, after: Cursor | None, upto: Cursor | None) -> sql.Composed:
        """The rows after one cursor and up to another.

        A row-value comparison alone is thought to keep a third of the table, and two of them a quarter: the server
        would rather read all of it. So what the cursors have in common is compared by itself, and so is the first
        column in which they differ."""
        after = None if after is None else self.texts(after)
        upto = None if upto is None else self.texts(upto)
        same = 0 if after is None or upto is None else _common(after, upto)
        bounds = [] if upto is None else [_compare([self.columns[n]], "=", upto[n : n + 1]) for n in range(same)]
        left = self.columns[same:]
        for operator, cursor in ((">", after), ("<=", upto)):
            if cursor is not None and len(left) > 1:
                bounds.append(_compare(left[:1], f"{operator[0]}=", cursor[same : same + 1]))
            if cursor is not None:
                bounds.append(_compare(left, operator, cursor[same:]))
        return self.where(sql.SQL(" and ").join(bounds) if bounds else sql.SQL("true"))

    @property
    def names(self) -> sql.Composed:
        return _COMMA.join(sql.Identifier(column.name) for column in self.columns)

    def literals(self, cursor: Cursor) -> sql.Composed:
        return _literals(self.columns, cursor)


def _common(after: Cursor, upto: Cursor) -> int:
    """How many of the first columns two cursors have in common; not the last one, by which they bound a range."""
    same = [one == other for one, other in zip(after[:-1], upto, strict=False)]
    return same.index(False) if False in same else len(same)


def _compare(columns: Sequence[KeyColumn], operator: str, texts: Cursor) -> sql.Composed:
    names = _COMMA.join(sql.Identifier(column.name) for column in columns)
    return sql.SQL("({}) {} ({})").format(names, sql.SQL(operator), _literals(columns, texts))


def _literals(columns: Sequence[KeyColumn], cursor: Cursor) -> sql.Composed:
    return _COMMA.join(column.literal(text) for column, text in zip(columns, cursor, strict=True))


@dataclass(frozen=True)
class _Ordered:
    """Rows of a table, by what it is ordered by."""

    order: KeyOrder

    @property
    def part(self) -> TableId:
        return self.order.table

    @property
    def namespaces(self) -> Sequence[str]:
        return self.order.namespaces

    @property
    def sent(self) -> str | None:
        return self.order.sent


@dataclass(frozen=True)
class KeyChunk(_Ordered):
    """The rows after one cursor and up to another, None meaning no bound."""

    after: Cursor | None
    upto: Cursor | None
    condition: str | None = None

    def rows(self) -> sql.Composed:
        return self.order.between(self.after, self.upto)


@dataclass(frozen=True)
class KeyList(_Ordered):
    """The rows that have one of some keys."""

    keys: tuple[Cursor, ...]
    condition: str | None = None

    def rows(self) -> sql.Composed:
        if not self.keys:
            return self.order.where(sql.SQL("false"))
        listed = _COMMA.join(sql.SQL("({})").format(self.order.literals(key)) for key in self.keys)
        return self.order.where(sql.SQL("({}) in (values {})").format(self.order.names, listed))


def key_order(conn: psycopg.Connection, table: SourceTable, order: Sequence[str] = ()) -> KeyOrder:
    """What the table is ordered by: these columns, or its key. A definite error where that cannot be."""
    chosen = {"relation": table.schema.relation, "order": list(order)}
    found = conn.execute(QUERIES["key_columns"], chosen).fetchall()
    names = [name for name, *_ in found]
    missing = [name for name in order if name not in names]
    nullable = [name for name, _, _, is_never_null, _ in found if not is_never_null]
    if missing:
        raise _refused(table, f"has no column {missing[0]} to go by", "name a column that it has")
    if nullable:
        hint = f"name a column that is not null, or: alter table {table.table} alter {nullable[0]} set not null"
        raise _refused(table, f"cannot be read by its column {nullable[0]}, which may be null", hint)
    if not found:
        raise _refused(table, "has no key to go by", "give it a primary key, or name a column to go by")
    if order and table.rows_estimated > SCAN_ROWS_MAX and not _leads_index(conn, chosen):
        listed = ", ".join(order)
        hint = f"create index concurrently on {table.table} ({listed})"
        raise _refused(table, f"has no index on {listed}, so every window would read all of it", hint)
    columns = tuple(
        KeyColumn(name, (type_[0], type_[1]), collation and (collation[0], collation[1]), version)
        for name, type_, collation, _, version in found
    )
    return KeyOrder(table.table, table.detail.is_partitioned, columns, table.detail.condition, has_index=not order)


def _leads_index(conn: psycopg.Connection, chosen: Mapping[str, Any]) -> bool:
    (found,) = conn.execute(QUERIES["leads_index"], chosen).fetchone() or (False,)
    return bool(found)


def last_key(conn: psycopg.Connection, order: KeyOrder) -> Cursor | None:
    """Where the last row stands; None without rows."""
    look_in(conn, order.namespaces)
    return _placed(conn, order, place(order, (None, None), " desc"))


def plan(
    conn: psycopg.Connection, order: KeyOrder, between: tuple[Cursor | None, Cursor | None], rows: int, count: int
) -> list[KeyChunk]:
    """See `Rows.key_chunks`."""
    look_in(conn, order.namespaces)
    if order.has_index and count <= STEPS_MAX:
        found, is_through = _stepped(conn, order, between, rows, count)
    else:
        numbered = conn.execute(boundaries(order, between, rows, count)).fetchall()
        found = [order.cursor(texts) for _, *texts in numbered]
        is_through = not numbered or numbered[-1][0] < rows * count
    after, last = between
    chunks: list[KeyChunk] = []
    for cursor in found:
        if after is None or order.texts(cursor) != list(order.texts(after)):
            chunks.append(KeyChunk(order, after, cursor))
        after = cursor
    if chunks and last is not None and is_through:
        chunks[-1] = replace(chunks[-1], upto=list(last))
    return chunks


def _stepped(
    conn: psycopg.Connection, order: KeyOrder, between: tuple[Cursor | None, Cursor | None], rows: int, count: int
) -> tuple[list[Cursor], bool]:
    """The last row of each chunk, and whether these are all rows of the range. To step over rows of an index takes the
    server a sixth of the time that numbering them does."""
    after, last = between
    found: list[Cursor] = []
    while len(found) < count:
        cursor = _placed(conn, order, place(order, (after, last), "", rows - 1))
        if cursor is None:
            rest = _placed(conn, order, place(order, (after, last), " desc"))
            return [*found, *([rest] if rest is not None else [])], True
        found.append(cursor)
        after = cursor
    return found, False


def _placed(conn: psycopg.Connection, order: KeyOrder, query: sql.Composed) -> Cursor | None:
    row = conn.execute(query).fetchone()
    return None if row is None else order.cursor(row)


def place(
    order: KeyOrder, between: tuple[Cursor | None, Cursor | None], direction: str, offset: int = 0
) -> sql.Composed:
    """A query for the key of the row that comes after this many rows of a range."""
    parts = {"rows": order.between(*between), "places": _places(order, direction), "offset": sql.Literal(offset)}
    return _query("place", order, parts)


def boundaries(order: KeyOrder, between: tuple[Cursor | None, Cursor | None], rows: int, count: int) -> sql.Composed:
    """A query for the last row of each chunk of a range: its number in the range, and its key as texts."""
    return _query(
        "boundaries",
        order,
        {
            "rows": order.between(*between),
            "places": _places(order, ""),
            "aliases": _COMMA.join(map(sql.SQL, _aliases(order))),
            "limit": sql.Literal(rows * count),
            "size": sql.Literal(rows),
        },
    )


def of_keys(order: KeyOrder, keys: pa.Table, schema: TableSchema) -> KeyList:
    """The rows with these keys, whose columns are called as in the lake."""
    names = {column.in_source: column.name for column in schema.columns}
    columns = [_texts(keys.column(names[column.name])) for column in order.columns]
    return KeyList(order, tuple(zip(*columns, strict=True)))


def _query(name: str, order: KeyOrder, parts: Mapping[str, sql.Composable]) -> sql.Composed:
    """A query about the keys of some rows. They get other names in it, which none of its own can be."""
    aliases = _aliases(order)
    keys = [
        sql.SQL("{} as {}").format(sql.Identifier(column.name), sql.SQL(alias))
        for column, alias in zip(order.columns, aliases, strict=True)
    ]
    # Of all functions that make text, this one prints a value as the server does when it sends it.
    texts = [sql.SQL("concat({})").format(sql.SQL(alias)) for alias in aliases]
    return sql.SQL(QUERIES[name]).format(keys=_COMMA.join(keys), texts=_COMMA.join(texts), **parts)


def _aliases(order: KeyOrder) -> list[Any]:
    return [f"key_{place}" for place in range(len(order.columns))]


def _places(order: KeyOrder, direction: Any) -> sql.Composed:
    return _COMMA.join(sql.SQL(f"{place}{direction}") for place in range(1, len(order.columns) + 1))


def _texts(values: Any) -> list[str]:
    """A column of keys as texts that the server understands."""
    if pa.types.is_binary(values.type):
        return [f"\\x{value.hex()}" for value in values.to_pylist()]
    if pa.types.is_timestamp(values.type):
        zone = "" if values.type.tz is None else "+00"
        return [f"{text}{zone}" for text in pc.cast(pc.cast(values, pa.timestamp("us")), pa.string()).to_pylist()]
    return list(pc.cast(values, pa.string()).to_pylist())


def _refused(table: SourceTable, problem: str, hint: str) -> DefiniteError:
    return DefiniteError(f"table {table.table} {problem}", hint, table=str(table.table))
