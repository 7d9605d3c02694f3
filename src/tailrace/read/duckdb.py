"""Cuts in DuckDB: no JVM, and an answer within a second of the shell."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import duckdb
import pyarrow as pa
from duckdb import DuckDBPyConnection, DuckDBPyRelation

from tailrace.changes.tail import TAIL_BYTES_MAX
from tailrace.lake.cuts import Cuts
from tailrace.lake.door import LakeTable
from tailrace.log.reader import LogReader
from tailrace.model.change import COUNT, PREFIX, UNCHANGED
from tailrace.model.cut import PublishedCut
from tailrace.read._layers import ROW, Layers
from tailrace.read.extensions import require_signed
from tailrace.read.names import Dialect

ROWS_AT_ONCE = 1000
How = Literal["inner", "semi", "anti"]
quote = Dialect.DUCKDB.quote


@dataclass(frozen=True)
class Names:
    """What a query names, in lower case, at any depth."""

    functions: frozenset[str] = frozenset()
    table_functions: frozenset[str] = frozenset()
    """Functions in place of tables."""
    tables: frozenset[str] = frozenset()
    """Without their namespaces."""
    shows: bool = False
    """Whether it asks which tables there are: `show tables`."""


def connect(*, is_private: bool = False) -> DuckDBPyConnection:
    """A database in memory, for queries over a lake: in UTC, as the log and Spark's session are.

    A name that no table has is an error: not a variable of ours, and not a reason to ask a server for an extension.
    With `is_private`, no one but us says what it loads: nothing is run on it, or queries alone (`is_one_query`). Then
    the signature of an extension is not computed each time, but once for its file (`_extensions`).
    """
    connection = duckdb.connect(
        config={
            "autoinstall_known_extensions": False,
            "python_enable_replacements": False,
            "allow_unsigned_extensions": is_private,
        }
    )
    connection.execute("set TimeZone = 'UTC'")
    return connection


def connect_for(sql: str) -> DuckDBPyConnection:
    """A database for what a person wants to run. A query alone cannot say what is loaded."""
    try:
        is_query = is_one_query(sql)
    except duckdb.Error:
        is_query = False
    return connect(is_private=is_query)


def confine(connection: DuckDBPyConnection, folders: Sequence[Path], memory_bytes_max: int) -> None:
    """For queries of others: from now on the connection reads files in these folders alone, takes no more memory than
    this, and none of it can be undone. What the folders' format needs must have been loaded before."""
    listed = ", ".join(_literal(str(folder)) for folder in folders)
    connection.execute(f"set memory_limit = '{memory_bytes_max} bytes'")
    connection.execute("set temp_directory = ''")
    connection.execute(f"set allowed_directories = [{listed}]")
    connection.execute("set enable_external_access = false")
    connection.execute("set lock_configuration = true")


def is_one_query(sql: str) -> bool:
    """Whether this is one statement that reads and does nothing else. DuckDB's error for what cannot be parsed."""
    statements = duckdb.extract_statements(sql)
    return len(statements) == 1 and statements[0].type == duckdb.StatementType.SELECT


def names_in(sql: str) -> Names:
    """What a query names. ValueError where that cannot be said, as of a `pivot`."""
    with duckdb.connect() as connection:
        (parsed,) = connection.execute("select json_serialize_sql($1)", [sql]).fetchone() or ("null",)
    tree = json.loads(parsed)
    if not isinstance(tree, dict) or tree.get("error"):
        raise ValueError("the query cannot be analysed")
    functions, table_functions, tables = set(), set(), set()
    shows = False
    waiting: list[Any] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            if node.get("type") == "TABLE_FUNCTION":
                table_functions.add(str(node["function"]["function_name"]).lower())
            functions.add(str(node.get("function_name", "")).lower())
            tables.add(str(node.get("table_name", "")).lower())
            shows |= node.get("type") == "SHOW_REF" and node.get("query") is None
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
    return Names(frozenset(functions), frozenset(table_functions), frozenset(tables), shows)


class DuckDBReadEngine:
    """Implements `ReadEngine`."""

    dialect = Dialect.DUCKDB
    errors: tuple[type[Exception], ...] = (duckdb.Error,)

    def __init__(self, connection: DuckDBPyConnection, tail_bytes_max: int = TAIL_BYTES_MAX) -> None:
        self._connection = connection
        self.tail_bytes_max = tail_bytes_max

    def base_for(
        self, reader: LogReader, cuts: Cuts, newest: PublishedCut, seq: int, last_move: Callable[[], int]
    ) -> PublishedCut:
        """To open a version takes milliseconds."""
        return newest

    def open(self, stored: LakeTable, version: int, *, keep: bool) -> DuckDBPyRelation:
        scan = stored.scan(version)
        for extension in filter(None, (scan.network, scan.extension)):
            if self._takes_unsigned():
                require_signed(extension)
            # By its file: to install it would copy it into the user's home.
            with suppress(duckdb.PermissionException):
                # Refused to a connection that is confined, which has it already.
                self._connection.execute(f"load {_literal(str(extension))}")
        if scan.setup is not None:
            self._connection.execute(scan.setup)
        return self._connection.sql(f"select * from {scan.sql}")

    def _takes_unsigned(self) -> bool:
        (found,) = self._connection.execute("select current_setting('allow_unsigned_extensions')").fetchone() or (True,)
        return bool(found)

    def of_arrow(self, table: pa.Table) -> DuckDBPyRelation:
        # A condition on a column is left to Arrow, to which NaN is greater than nothing, and which does not know every
        # condition that a join makes. One on an expression is not.
        columns = [f"coalesce({name}, {name}) as {name}" for name in map(quote, table.column_names)]
        return self._connection.from_arrow(table).project(", ".join(columns))

    def shaped(self, frame: DuckDBPyRelation, columns: Mapping[str, str | None], shape: Any) -> DuckDBPyRelation:
        types = dict(zip(shape.names, self.of_arrow(shape.empty_table()).types, strict=True))
        return frame.project(
            ", ".join(
                f"{f'cast(null as {types[name]})' if taken is None else quote(taken)} as {quote(name)}"
                for name, taken in columns.items()
            )
        )

    def rows_of(self, frame: DuckDBPyRelation, keys: pa.Table) -> pa.Table:
        return self._joined(frame, keys, keys.column_names, "semi").to_arrow_table()

    def laid_over(self, frame: DuckDBPyRelation, over: Layers) -> DuckDBPyRelation:
        columns = frame.columns
        found = frame
        if over.touched.num_rows:
            found = self._joined(found, over.touched, over.key, "anti")
        if over.gone.num_rows:
            found = self._without(found, over.gone)
        if over.whole.num_rows:
            found = found.union(self.of_arrow(over.whole).project(", ".join(map(quote, columns))))
        if over.partial.num_rows:
            completed = self._joined(frame, over.partial, over.key, "inner")
            merged = [_merged(name) if name == over.exact else _newer_unless_left_out(name) for name in columns]
            found = found.union(completed.project(", ".join(merged)))
        return found

    def _joined(self, base: DuckDBPyRelation, rows: pa.Table, key: Sequence[str], how: How) -> DuckDBPyRelation:
        # DuckDB takes NaN for equal to NaN, and zero to minus zero, as `model.rows.key` does.
        same = " and ".join(f"base.{quote(name)} = newer.{quote(name)}" for name in key)
        return base.set_alias("base").join(self.of_arrow(rows).set_alias("newer"), same, how=how)

    def _without(self, base: DuckDBPyRelation, gone: pa.Table) -> DuckDBPyRelation:
        """Only rows that are equal to one that goes are counted; all others pass."""
        same = " and ".join(_is_same(field) for field in gone.schema if not field.name.startswith(PREFIX))
        columns = ", ".join(f"base.{quote(name)} as {quote(name)}" for name in base.columns)
        newer = self.of_arrow(gone).set_alias("newer")
        others = base.set_alias("base").join(newer, same, how="anti")
        place = f"row_number() over (partition by newer.{quote(ROW)}) > newer.{quote(COUNT)}"
        equal = base.set_alias("base").join(newer, same).project(f"{columns}, {place} as {quote(ROW)}")
        return others.union(equal.filter(quote(ROW)).project(", ".join(map(quote, base.columns))))

    def show(self, view: str, frame: DuckDBPyRelation) -> None:
        self._connection.register(view, frame)

    def hide(self, view: str) -> None:
        self._connection.unregister(view)

    def sql(self, query: str) -> DuckDBPyRelation:
        found: DuckDBPyRelation | None = self._connection.sql(query)
        # A statement such as `create table` gives no rows, not even none.
        return self._connection.sql("select 'done' as result where false") if found is None else found

    def columns(self, frame: DuckDBPyRelation) -> list[str]:
        return frame.columns

    def types(self, frame: DuckDBPyRelation) -> list[str]:
        return [str(each) for each in frame.types]

    def rows(self, frame: DuckDBPyRelation, rows_max: int | None = None) -> Iterator[tuple[Any, ...]]:
        given = 0
        while rows_max is None or given < rows_max:
            at_once = ROWS_AT_ONCE if rows_max is None else min(ROWS_AT_ONCE, rows_max - given)
            rows = self._next_rows(frame, at_once)
            if not rows:
                return
            yield from rows
            given += len(rows)

    def _next_rows(self, frame: DuckDBPyRelation, count: int) -> list[tuple[Any, ...]]:
        """Ctrl-C ends the query. DuckDB tells of it in its own way, and would have its threads continue."""
        try:
            return frame.fetchmany(count)
        except RuntimeError as error:
            if "interrupted" not in str(error):
                raise
            self._connection.interrupt()
            raise KeyboardInterrupt from None


def _is_same(field: pa.Field) -> str:
    """Of two rows without a key; DuckDB itself takes -0.0 for 0.0, and NaN for NaN."""
    one, other = f"base.{quote(field.name)}", f"newer.{quote(field.name)}"
    same = f"{one} is not distinct from {other}"
    if pa.types.is_floating(field.type):
        same += f" and ({one} = 0 and signbit({one})) is not distinct from ({other} = 0 and signbit({other}))"
    if pa.types.is_list(field.type) and pa.types.is_floating(field.type.value_type):
        same += f" and cast({one} as varchar) is not distinct from cast({other} as varchar)"
    return same


def _merged(name: str) -> str:
    """The newer row's texts, and the base row's of columns that were left out."""
    base, newer = f"map_entries(base.{quote(name)})", f"map_entries(newer.{quote(name)})"
    kept = f"list_filter({base}, lambda each: list_contains(newer.{quote(UNCHANGED)}, each.key))"
    both = f"list_sort(list_concat(coalesce({kept}, []), coalesce({newer}, [])))"
    return f"case when len({both}) > 0 then map_from_entries({both}) end as {quote(name)}"


def _newer_unless_left_out(name: str) -> str:
    is_left_out = f"list_contains(newer.{quote(UNCHANGED)}, {_literal(name)})"
    return f"case when {is_left_out} then base.{quote(name)} else newer.{quote(name)} end as {quote(name)}"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
