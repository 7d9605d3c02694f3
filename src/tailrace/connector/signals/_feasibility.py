"""Whether the source can do what a signal asks for: found out beside the stream, which waits for no table that is
locked and for no query that takes long.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from tailrace.connector.messages import beside
from tailrace.connector.signals.orders import ChosenTable
from tailrace.errors import TransientError
from tailrace.model.backoff import Backoff
from tailrace.model.table import TableId

BACKOFF = Backoff(1.0, 60.0)

WhyNot = Callable[[TableId, str | None, str | None], str | None]


class Feasibility:
    """What is known of one signal. One thread asks; another works."""

    def __init__(self, why_not: WhyNot) -> None:
        self._why_not = why_not
        self._tables: tuple[ChosenTable, ...] = ()
        self._answer: Future[list[str | None]] | None = None
        self._failures = 0
        self._due = 0.0

    @property
    def is_open(self) -> bool:
        return self._answer is not None and not self._answer.done()

    def reasons(self, tables: Sequence[ChosenTable]) -> list[str | None] | None:
        """For each of the tables, why its rows cannot be read so, or None. None instead of a list while that is being
        found out, which is begun by the first call; what fails is tried again after a while."""
        if not any(each.condition or each.surrogate_key for each in tables):
            return [None] * len(tables)
        if self._answer is None or (self._tables != tuple(tables) and not self.is_open):
            if time.monotonic() >= self._due:
                self._tables = tuple(tables)
                self._answer = beside(self._ask)
            return None
        if not self._answer.done():
            return None
        try:
            return self._answer.result()
        except TransientError:
            self._answer = None
            self._failures += 1
            self._due = time.monotonic() + BACKOFF.seconds(self._failures)
            return None

    def _ask(self) -> list[str | None]:
        return [self._why_not(each.table, each.condition, each.surrogate_key) for each in self._tables]
