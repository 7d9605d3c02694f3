"""Queries of others in DuckDB, which is confined to the tables of one lake.

To be asked in a process of its own: what DuckDB makes of a constant, such as `range(1000000000)`, it neither counts nor
interrupts.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb

from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.read.cut import Cut
from tailrace.read.duckdb import Names, confine, connect, is_one_query, names_in
from tailrace.server.errors import RequestError
from tailrace.server.queries.answer import Query, answer, cut_for, whole_text

MEMORY_BYTES_MAX = 1 << 30
TABLE_FUNCTIONS = frozenset({"generate_series", "range", "unnest"})
"""In place of a table. Others run SQL from a text, or read with an extension that no confinement of DuckDB's holds."""
REFUSED = Names(
    functions=frozenset({"current_setting", "getenv", "getvariable", "write_log"}), tables=frozenset({"pg_settings"})
)
"""What tells of this machine: where folders are, how DuckDB is set."""


def ask(home: LakeHome, query: Query) -> bytes:
    """The answer as JSON. A request error for what may not be asked, and for what needs too much memory."""
    try:
        return _asked(home, query)
    except (RequestError, DefiniteError) as error:
        if isinstance(error.__cause__, duckdb.OutOfMemoryException):
            raise _too_large() from None
        raise
    except (MemoryError, duckdb.OutOfMemoryException):
        raise _too_large() from None
    except RecursionError:
        raise RequestError("the query is nested too deeply", "ask in a simpler way") from None
    except UnicodeEncodeError:
        raise RequestError("the query has text that is not UTF-8", "half a surrogate pair is not a character") from None


def _asked(home: LakeHome, query: Query) -> bytes:
    began = time.monotonic()
    try:
        is_one = is_one_query(query.sql)
    except duckdb.Error as error:
        raise RequestError(whole_text(error), "send one select") from None
    if not is_one:
        raise RequestError("only a single SELECT is allowed", "send one select")
    named = _names(query.sql)
    with connect(is_private=True) as connection:
        found = cut_for(connection, home, query)
        _require_no_files(named, found)
        for name in found.tables:
            # Opened once, the format has loaded what it needs. A table in trouble troubles those who ask for it.
            with suppress(DefiniteError):
                found.tables[name]
                break
        confine(connection, [Path(home.place_of(table).address) for table in found.tables.known], MEMORY_BYTES_MAX)
        if named.shows:
            found.register()
        return answer(found, query, began)


def _names(sql: str) -> Names:
    """What the query names, if it may."""
    try:
        named = names_in(sql)
    except ValueError:
        raise RequestError("only a plain SELECT is allowed", "send one without pivot in it") from None
    strange = (named.table_functions - TABLE_FUNCTIONS) | (named.functions & REFUSED.functions)
    for kind, names in (("function", strange), ("table", named.tables & REFUSED.tables)):
        if names:
            raise RequestError(f"{kind} {', '.join(sorted(names))} is not allowed", "query the lake's tables")
    return named


def _require_no_files(named: Names, found: Cut[Any]) -> None:
    """DuckDB takes the name of no table for that of a file, if it ends as one. Files of a table's folder have rows that
    the cut does not have: older ones, and deleted ones."""
    known = {each.lower() for table in found.tables.known for each in (table.name, str(table))}
    files = {each for each in named.tables if "." in each} - known
    if files:
        raise RequestError(
            f"there is no table {min(files)[:200]}", "query the lake's tables; files are not read by name"
        )


def _too_large() -> RequestError:
    return RequestError(
        f"the query needs more memory than it may use: {MEMORY_BYTES_MAX >> 20} MiB", "ask for less at once"
    )
