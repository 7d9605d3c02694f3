"""Open consoles: each listens to events, and asks what its page asks, as often as `store.js` has it do.

Half of them show the overview, half the connector that streams. A page asks again when an event says so, but no more
than once a second; the overview anyway every 15 seconds, a connector's page every 10, and its figures every 2. A
browser draws in a process of its own, often on another machine, so nothing is drawn here.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import TracebackType

import httpx

CONSOLES = 20
AGAIN_SECONDS = 1.0
LOOK_SECONDS = 0.1
STATES = frozenset({"LifeChanged", "StateChanged", "TroubleChanged", "TableChanged", "TablesLanded"})
COPIES = frozenset({"SnapshotProgressed", "CopyNotified"})


@dataclass
class Answer:
    """One that a page shows and keeps fresh."""

    kind: str
    path: str
    every_seconds: float
    events: frozenset[str] = frozenset()
    asked: float = float("-inf")
    is_old: bool = False
    """An event has said so since it was asked."""

    def is_due(self) -> bool:
        passed = time.monotonic() - self.asked
        return passed >= self.every_seconds or (self.is_old and passed >= AGAIN_SECONDS)


class Consoles:
    """Inside a `with`."""

    def __init__(self, address: str, connector: str) -> None:
        self._address = address
        self._connector = connector
        self._end = threading.Event()
        self._lock = threading.Lock()
        self.requests: Counter[str] = Counter()
        self.failed = 0
        self.events = 0
        """That all of them heard."""
        self._threads = [threading.Thread(target=self._show, args=(number % 2 == 0,)) for number in range(CONSOLES)]

    def __enter__(self) -> Consoles:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join()

    def _show(self, is_overview: bool) -> None:
        answers = overview() if is_overview else page_of(self._connector)
        hears = threading.Thread(target=self._listen, args=(answers,))
        hears.start()
        with httpx.Client(base_url=self._address, timeout=60) as client:
            while not self._end.wait(LOOK_SECONDS):
                for each in answers:
                    if each.is_due():
                        self._ask(client, each)
        hears.join()

    def _ask(self, client: httpx.Client, wanted: Answer) -> None:
        # Before it is sent: what happens meanwhile makes it old again.
        wanted.asked, wanted.is_old = time.monotonic(), False
        try:
            is_good = client.get(wanted.path).status_code < 400
        except httpx.HTTPError:
            is_good = False
        with self._lock:
            self.requests[wanted.kind] += 1
            self.failed += not is_good

    def _listen(self, answers: list[Answer]) -> None:
        with httpx.Client(base_url=self._address, timeout=60) as client, client.stream("GET", "/events") as answer:
            for line in answer.iter_lines():
                if self._end.is_set():
                    return
                if line.startswith("event:"):
                    kind = line.removeprefix("event:").strip()
                    with self._lock:
                        self.events += 1
                    for each in answers:
                        each.is_old |= kind in each.events


def overview() -> list[Answer]:
    """What it asks."""
    return [
        Answer("overview", "/connectors?expand=progress", 15.0, STATES),
        Answer("figures of all", f"/figures?figures=lag_seconds&since={_since()}", 15.0),
        Answer("server", "/tailrace", 60.0),
    ]


def page_of(name: str) -> list[Answer]:
    """What the page of one connector asks, with the side that lists all."""
    figures = "&".join(
        f"figures={each}" for each in ("lag_seconds", "lag_bytes", "changes_per_second", "published_per_second")
    )
    return [
        Answer("overview", "/connectors?expand=progress", 15.0, STATES),
        Answer("progress", f"/connectors/{name}/progress", 10.0, STATES | COPIES),
        Answer("figures of one", f"/connectors/{name}/figures?{figures}&since={_since()}", 2.0),
        Answer("server", "/tailrace", 60.0),
    ]


def _since() -> str:
    """A quarter of an hour ago."""
    return (datetime.now(UTC) - timedelta(minutes=15)).strftime("%Y-%m-%dT%H:%M:%SZ")
