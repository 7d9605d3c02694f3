"""Everything that hosted connectors tell, passed on to whoever listens at the moment.

A listener that is too slow loses the oldest of what it has not taken, and is told how much: it never holds up a
connector, and what it holds of memory is bounded.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tailrace.connector.events import Event
from tailrace.server.supervisor.lifecycle import Life

WAITING_MAX = 1000


@dataclass(frozen=True)
class LifeChanged:
    """A connector was started, held, ended, failed, removed or will be tried again."""

    life: Life


@dataclass(frozen=True)
class EventsMissed:
    """Events that were not passed on because the listener was too slow."""

    count: int


Told = Event | LifeChanged | EventsMissed


class Listener:
    """What has been told and not been taken yet. `wake` is called by the threads that tell, and must return at once."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._waiting: deque[tuple[str, Told]] = deque()
        self._missed = 0

    def hear(self, name: str, told: Told) -> None:
        with self._lock:
            self._waiting.append((name, told))
            if len(self._waiting) > WAITING_MAX:
                self._waiting.popleft()
                self._missed += 1
        self._wake()

    def take(self) -> list[tuple[str, Told]]:
        """All of it, oldest first."""
        with self._lock:
            taken, missed = list(self._waiting), self._missed
            self._waiting.clear()
            self._missed = 0
        return [("", EventsMissed(missed)), *taken] if missed else taken


class Hub:
    """Any thread tells, any thread listens."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hearers: tuple[Callable[[str, Told], None], ...] = ()
        self.listeners = 0
        """How many listen at present."""

    def tell(self, name: str, told: Told) -> None:
        for hear in self._hearers:
            hear(name, told)

    def subscribe(self, hear: Callable[[str, Told], None]) -> None:
        """For ever. Called by the threads that tell, and must return at once."""
        with self._lock:
            self._hearers = (*self._hearers, hear)

    @contextmanager
    def listening(self, wake: Callable[[], None]) -> Iterator[Listener]:
        """Everything that is told inside the `with`."""
        listener = Listener(wake)
        with self._lock:
            self._hearers = (*self._hearers, listener.hear)
            self.listeners += 1
        try:
            yield listener
        finally:
            with self._lock:
                self.listeners -= 1
                self._hearers = tuple(each for each in self._hearers if each != listener.hear)
