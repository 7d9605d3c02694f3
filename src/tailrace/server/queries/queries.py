"""SQL that others send: over one cut, reading only, and no more of anything than it may take.

DuckDB alone answers, in a process that lives for one query and is confined to the files of one lake. Spark is not asked
for others: its SQL reads any file, runs programs and shares one JVM with the connectors.
What a query may take is bounded in time, rows, bytes of the answer, memory and how many run at once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tailrace.lake.home import LakeHome
from tailrace.server.errors import BusyError, NotFoundError, RequestConflictError, RequestError
from tailrace.server.queries._process import QueryProcess, QueryStop
from tailrace.server.queries.answer import Query

AT_ONCE = 4
SQL_CHARACTERS_MAX = 100_000


class Queries:
    """Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.process = QueryProcess()
        self._stopping: dict[str, QueryStop] = {}
        self.running = 0
        """How many run at present."""

    def ask(self, home: LakeHome, query: Query, name: str | None = None) -> bytes:
        """The answer as JSON. With a name, the query can be stopped by it."""
        if query.published and query.as_of is not None:
            raise RequestError("published and as_of exclude each other", "leave one out")
        with self._counted(), self._named(name) as stopping:
            return self.process.ask(home, query, stopping)

    def stop(self, name: str) -> None:
        """Kill the query of this name; not found where none runs."""
        with self._lock:
            stopping = self._stopping.get(name)
        if stopping is None:
            raise NotFoundError(f"no query {name} runs", "it has ended, or was asked without this id")
        stopping.stop()

    def close(self) -> None:
        """End the process that answers."""
        self.process.close()

    @contextmanager
    def _named(self, name: str | None) -> Iterator[QueryStop]:
        stopping = QueryStop()
        if name is None:
            yield stopping
            return
        with self._lock:
            if name in self._stopping:
                raise RequestConflictError(f"a query {name} runs already", "give each its own id")
            self._stopping[name] = stopping
        try:
            yield stopping
        finally:
            with self._lock:
                del self._stopping[name]

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
