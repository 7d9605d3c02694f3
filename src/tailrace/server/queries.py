"""SQL that others send: over one cut, reading only, and no more of anything than it may take.

A query sees the tables of one lake and nothing else of this machine: DuckDB is confined to their folders, and Spark
gets a session of its own in which files, scripts and reflection cannot be named. What it may take is bounded in time,
rows, bytes of the answer, memory (DuckDB) and how many run at once.
"""

from __future__ import annotations

import math
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.read.cut import Cut, cut
from tailrace.read.duckdb import confine, connect, is_one_query, table_functions
from tailrace.server._spark_queries import private_session, require_query, spark_required
from tailrace.server.errors import BusyError, RequestError, TimedOutError
from tailrace.spark.session import LazySession

AT_ONCE = 4
ANSWER_BYTES_MAX = 32 << 20
MEMORY_BYTES_MAX = 1 << 30
INTERRUPT_SECONDS = 0.2
SQL_CHARACTERS_MAX = 100_000
FUNCTIONS = frozenset({"generate_series", "range", "unnest"})
"""In place of a table. Others run SQL from a text, or read with an extension that no confinement of DuckDB's holds."""


@dataclass(frozen=True)
class Query:
    """What is asked."""

    sql: str
    in_spark: bool = False
    published: bool = False
    as_of: str | None = None
    rows_max: int = 1000
    seconds_max: float = 30.0


@dataclass(frozen=True)
class Answer:
    """Rows of one cut, as JSON's values."""

    columns: list[str]
    rows: list[list[Any]]
    is_cut_short: bool
    """There were more rows, or they were too large."""
    seq: int
    position: str
    committed: datetime


class Queries:
    """Any thread."""

    def __init__(self, spark: LazySession) -> None:
        self._spark = spark
        self._free = threading.BoundedSemaphore(AT_ONCE)

    def ask(self, home: LakeHome, query: Query) -> Answer:
        if query.published and query.as_of is not None:
            raise RequestError("published and as_of exclude each other", "leave one out")
        if not self._free.acquire(blocking=False):
            raise BusyError(f"{AT_ONCE} queries run already", "ask again when one has ended")
        try:
            return self._in_spark(home, query) if query.in_spark else self._in_duckdb(home, query)
        except RecursionError:
            raise RequestError("the query is nested too deeply", "ask in a simpler way") from None
        finally:
            self._free.release()

    def _in_duckdb(self, home: LakeHome, query: Query) -> Answer:
        if not is_one_query(query.sql):
            raise RequestError("only one query that reads can be asked", "send one select")
        _require_tables_alone(query.sql)
        with connect() as connection:
            found = _cut(connection, home, query)
            for name in found.tables:
                # Opened once, the format has loaded what it needs.
                with _suppressed():
                    found.tables[name]
                    break
            confine(connection, [home.table_path(table) for table in found.tables.known], MEMORY_BYTES_MAX)
            with _limited(connection.interrupt, query.seconds_max) as limit:
                return _answer(found, query, limit)

    def _in_spark(self, home: LakeHome, query: Query) -> Answer:
        group = f"query-{uuid.uuid4()}"
        with spark_required():
            session = private_session(self._spark.get())
            require_query(session, query.sql)
            context = session.sparkContext
            context.setJobGroup(group, "a query of the server's", interruptOnCancel=True)
            with _limited(lambda: context.cancelJobGroup(group), query.seconds_max) as limit:
                return _answer(_cut(session, home, query), query, limit)


def _require_tables_alone(sql: str) -> None:
    try:
        strange = table_functions(sql) - FUNCTIONS
    except ValueError:
        raise RequestError("only plain queries can be asked here", "send one select") from None
    if strange:
        raise RequestError(f"{', '.join(sorted(strange))} cannot be asked here", "name the lake's tables")


class _Limit:
    """Whether the time is over."""

    def __init__(self) -> None:
        self.is_over = threading.Event()
        self.has_ended = threading.Event()


@contextmanager
def _limited(interrupt: Callable[[], None], seconds: float) -> Iterator[_Limit]:
    """After so many seconds what is done inside is interrupted, again and again until it has ended."""
    limit = _Limit()

    def watch() -> None:
        if limit.has_ended.wait(seconds):
            return
        limit.is_over.set()
        while not limit.has_ended.wait(INTERRUPT_SECONDS):
            with suppress(Exception):
                # What cannot be interrupted has ended, or will be told of where it is waited for.
                interrupt()

    watcher = threading.Thread(target=watch, name="query limit", daemon=True)
    watcher.start()
    try:
        yield limit
    finally:
        limit.has_ended.set()
        watcher.join()


@contextmanager
def _suppressed() -> Iterator[None]:
    try:
        yield
    except DefiniteError:
        # A table in trouble troubles those who ask for it.
        return


def _cut(session: Any, home: LakeHome, query: Query) -> Cut[Any]:
    return cut(session, home.path, published=query.published, as_of=query.as_of, register=False)


def _answer(found: Cut[Any], query: Query, limit: _Limit) -> Answer:
    try:
        frame = found.sql(query.sql)
        columns = found.engine.columns(frame)
        rows, is_cut_short = _taken(found.engine.rows(frame, query.rows_max + 1), query.rows_max, limit)
    except (Exception, KeyboardInterrupt) as error:
        # DuckDB tells of an interrupted query as of Ctrl-C.
        if limit.is_over.is_set():
            raise TimedOutError(f"the query took longer than {query.seconds_max:g} s", "ask for less") from None
        if not isinstance(error, found.engine.errors):
            raise
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise RequestError(reason, f"tables: {', '.join(sorted(found.tables)[:50])}") from None
    return Answer(columns, rows, is_cut_short, found.seq, found.text, found.commit_time)


def _taken(rows: Iterator[tuple[Any, ...]], rows_max: int, limit: _Limit) -> tuple[list[list[Any]], bool]:
    taken: list[list[Any]] = []
    room = ANSWER_BYTES_MAX
    for row in rows:
        values = [_plain(value) for value in row]
        room -= sum(len(str(value)) for value in values)
        if len(taken) == rows_max or room < 0:
            return taken, True
        if limit.is_over.is_set():
            raise TimedOutError("the query took too long", "ask for less")
        taken.append(values)
    return taken, False


def _plain(value: Any) -> Any:
    """As JSON has it. Bytes as Postgres writes them; what JSON has no number for is its text."""
    match value:
        case None | bool() | int() | str():
            return value
        case float() if math.isfinite(value):
            return value
        case list() | tuple():
            return [_plain(each) for each in value]
        case dict():
            return {str(key): _plain(each) for key, each in value.items()}
    return _text(value)


def _text(value: Any) -> str:
    match value:
        case bytes() | bytearray():
            return f"\\x{value.hex()}"
        case datetime() | date() | time():
            return value.isoformat()
    return str(value)
