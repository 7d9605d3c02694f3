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

    count: int | None
    """None where that is not known: another server told them."""


Told = Event | LifeChanged | EventsMissed


@dataclass
class Telling:
    """One thing that was told: the same object for all who listen."""

    number: int
    """Grows by one with each."""
    name: str
    """The connector's."""
    told: Told
    shown: str | None = None
    """As it is sent. Made by the first who sends it: there may be many."""


class Listener:
    """What has been told and not been taken yet. `wake` is called by the threads that tell, and must return at once."""

    def __init__(self, wake: Callable[[], None], newest: int) -> None:
        self._wake = wake
        self._lock = threading.Lock()
        self._waiting: deque[Telling] = deque()
        self._missed = 0
        self.began = newest
        """What was told last before it listened."""

    def hear(self, telling: Telling) -> None:
        with self._lock:
            self._waiting.append(telling)
            if len(self._waiting) > WAITING_MAX:
                self._waiting.popleft()
                self._missed += 1
        self._wake()

    def take(self) -> list[Telling]:
        """All of it, oldest first."""
        with self._lock:
            taken, missed = list(self._waiting), self._missed
            self._waiting.clear()
            self._missed = 0
        return [Telling(taken[0].number - 1, "", EventsMissed(missed)), *taken] if missed else taken


class Hub:
    """Any thread tells, any thread listens."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscribers: tuple[Callable[[str, Told], None], ...] = ()
        self._listeners: list[Listener] = []
        self._newest = 0

    @property
    def listeners(self) -> int:
        """How many listen at present."""
        return len(self._listeners)

    def tell(self, name: str, told: Told) -> None:
        # Before those who listen: who hears of something and asks for the state must find it there.
        for hear in self._subscribers:
            hear(name, told)
        with self._lock:
            self._newest += 1
            telling = Telling(self._newest, name, told)
            for listener in self._listeners:
                listener.hear(telling)

    def subscribe(self, hear: Callable[[str, Told], None]) -> None:
        """For ever. Called by the threads that tell, and must return at once."""
        with self._lock:
            self._subscribers = (*self._subscribers, hear)

    @contextmanager
    def listening(self, wake: Callable[[], None]) -> Iterator[Listener]:
        """Everything that is told inside the `with`."""
        with self._lock:
            listener = Listener(wake, self._newest)
            self._listeners.append(listener)
        try:
            yield listener
        finally:
            with self._lock:
                self._listeners.remove(listener)
