"""Queries of others in DuckDB, which is confined to the tables of one lake.

To be asked in a process of its own: what DuckDB makes of a constant, such as `range(1000000000)`, it neither counts nor
interrupts.
"""

from __future__ import annotations

from contextlib import suppress

import duckdb

from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.read.duckdb import Names, confine, connect, is_one_query, names_in
from tailrace.server._answering import Query, answer, cut_for
from tailrace.server.errors import RequestError

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
        raise RequestError(
            "the query has text that is not UTF-8", "one half of a surrogate pair is no letter"
        ) from None


def _asked(home: LakeHome, query: Query) -> bytes:
    try:
        is_one = is_one_query(query.sql)
    except duckdb.Error as error:
        raise RequestError((str(error).strip().splitlines() or ["not SQL"])[0], "send one select") from None
    if not is_one:
        raise RequestError("only one query that reads can be asked", "send one select")
    _require_tables_alone(query.sql)
    with connect(is_private=True) as connection:
        found = cut_for(connection, home, query)
        for name in found.tables:
            # Opened once, the format has loaded what it needs. A table in trouble troubles those who ask for it.
            with suppress(DefiniteError):
                found.tables[name]
                break
        confine(connection, [home.table_path(table) for table in found.tables.known], MEMORY_BYTES_MAX)
        return answer(found, query)


def _require_tables_alone(sql: str) -> None:
    try:
        named = names_in(sql)
    except ValueError:
        raise RequestError("only plain queries can be asked here", "send one select") from None
    strange = (
        (named.table_functions - TABLE_FUNCTIONS)
        | (named.functions & REFUSED.functions)
        | (named.tables & REFUSED.tables)
    )
    if strange:
        raise RequestError(f"{', '.join(sorted(strange))} cannot be asked here", "name the lake's tables")


def _too_large() -> RequestError:
    return RequestError(
        f"the query needs more memory than it may take: {MEMORY_BYTES_MAX >> 20} MiB", "ask for less at once"
    )
