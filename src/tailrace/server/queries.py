"""SQL that others send: over one cut, reading only, and no more of anything than it may take.

A query sees the tables of one lake and nothing else of this machine: DuckDB is confined to their folders, in a process
that lives for one query, and Spark gets a session of its own in which files, scripts and reflection cannot be named.
What it may take is bounded in time, rows, bytes of the answer, memory (DuckDB) and how many run at once.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tailrace.lake.home import LakeHome
from tailrace.server._answering import Query, answer, cut_for
from tailrace.server._query_process import QueryProcess
from tailrace.server._spark_queries import private_session, require_query, spark_required
from tailrace.server.errors import BusyError, RequestError
from tailrace.spark.session import LazySession

AT_ONCE = 4
INTERRUPT_SECONDS = 0.2
SQL_CHARACTERS_MAX = 100_000


class Queries:
    """Any thread."""

    def __init__(self, spark: LazySession) -> None:
        self._spark = spark
        self._lock = threading.Lock()
        self.process = QueryProcess()
        """Which answers for DuckDB."""
        self.running = 0
        """How many run at present."""

    def ask(self, home: LakeHome, query: Query) -> bytes:
        """The answer as JSON."""
        if query.published and query.as_of is not None:
            raise RequestError("published and as_of exclude each other", "leave one out")
        with self._counted():
            return self._in_spark(home, query) if query.in_spark else self.process.ask(home, query)

    def close(self) -> None:
        """End the process for DuckDB."""
        self.process.close()

    @contextmanager
    def _counted(self) -> Iterator[None]:
        with self._lock:
            if self.running == AT_ONCE:
                raise BusyError(f"{AT_ONCE} queries run already", "ask again when one has ended")
            self.running += 1
        try:
            yield
        finally:
            with self._lock:
                self.running -= 1

    def _in_spark(self, home: LakeHome, query: Query) -> bytes:
        group = f"query-{uuid.uuid4()}"
        with spark_required(), _depth_told():
            session = private_session(self._spark.get())
            require_query(session, query.sql)
            context = session.sparkContext
            context.setJobGroup(group, "a query of the server's", interruptOnCancel=True)
            with _limited(lambda: context.cancelJobGroup(group), query.seconds_max) as is_over:
                return answer(cut_for(session, home, query), query, is_over.is_set)


@contextmanager
def _depth_told() -> Iterator[None]:
    try:
        yield
    except RecursionError:
        raise RequestError("the query is nested too deeply", "ask in a simpler way") from None


@contextmanager
def _limited(interrupt: Callable[[], None], seconds: float) -> Iterator[threading.Event]:
    """After so many seconds what is done inside is interrupted, again and again until it has ended. The event says that
    the time is over."""
    is_over, has_ended = threading.Event(), threading.Event()

    def watch() -> None:
        if has_ended.wait(seconds):
            return
        is_over.set()
        while not has_ended.wait(INTERRUPT_SECONDS):
            with suppress(Exception):
                # What cannot be interrupted has ended, or will be told of where it is waited for.
                interrupt()

    watcher = threading.Thread(target=watch, name="query limit", daemon=True)
    watcher.start()
    try:
        yield is_over
    finally:
        has_ended.set()
        watcher.join()
