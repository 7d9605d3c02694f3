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
from tailrace.server.errors import BusyError, RequestError
from tailrace.server.queries._process import QueryProcess
from tailrace.server.queries.answer import Query

AT_ONCE = 4
SQL_CHARACTERS_MAX = 100_000


class Queries:
    """Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.process = QueryProcess()
        self.running = 0
        """How many run at present."""

    def ask(self, home: LakeHome, query: Query) -> bytes:
        """The answer as JSON."""
        if query.published and query.as_of is not None:
            raise RequestError("published and as_of exclude each other", "leave one out")
        with self._counted():
            return self.process.ask(home, query)

    def close(self) -> None:
        """End the process that answers."""
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
