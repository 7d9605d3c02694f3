"""Clients of a server: what people, probes and Prometheus ask of fifty connectors.

Every second each connector's state, and the list of all with their states; every five seconds each one's tables, a
query, the figures and the probes; and five who listen to events all the time. Of fifty connectors that is 62 requests a
second, at a fixed rate: a server that answers sooner is not asked more.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections import defaultdict
from types import TracebackType

import httpx

CLIENTS = 5
LISTENERS = 5
SLOW_SECONDS = 5.0
QUERY = {"connector": "connector-0", "sql": "select status, count(*) from orders group by all"}


class Traffic:
    """Inside a `with`."""

    def __init__(self, address: str, connectors: int) -> None:
        self._address = address
        self._names = [f"connector-{number}" for number in range(connectors)]
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._took: dict[str, list[float]] = defaultdict(list)
        self._errors: dict[str, int] = defaultdict(int)
        self._begun = 0.0
        self._length = 0.0
        parts = [self._names[number::CLIENTS] for number in range(CLIENTS)]
        self._threads = [threading.Thread(target=self._ask_states, args=(part,)) for part in parts]
        self._threads += [threading.Thread(target=self._ask_all)]
        self._threads += [threading.Thread(target=self._listen) for _ in range(LISTENERS)]

    def __enter__(self) -> Traffic:
        self._begun = time.monotonic()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._length = time.monotonic() - self._begun
        self._end.set()
        for thread in self._threads:
            thread.join()

    @property
    def kinds(self) -> list[str]:
        return sorted(self._took)

    @property
    def failed(self) -> int:
        return sum(self._errors.values())

    def p99(self, kind: str) -> float:
        ordered = sorted(self._took[kind])
        return ordered[int(len(ordered) * 0.99)]

    def row(self, kind: str) -> list[str]:
        took = self._took[kind]
        p50 = statistics.median(took)
        rate = len(took) / self._length
        times = [f"{each * 1e3:,.0f} ms" for each in (p50, self.p99(kind))]
        return [f"{len(took):,}", f"{rate:,.1f}", *times, str(self._errors[kind])]

    def _ask(self, client: httpx.Client, kind: str, path: str, body: object = None) -> None:
        begun = time.monotonic()
        try:
            answer = client.get(path) if body is None else client.post(path, json=body)
            is_good = answer.status_code < 400
        except httpx.HTTPError:
            is_good = False
        with self._lock:
            self._took[kind].append(time.monotonic() - begun)
            self._errors[kind] += not is_good

    def _ask_states(self, names: list[str]) -> None:
        """Each once a second, and its tables now and then."""
        with httpx.Client(base_url=self._address, timeout=60) as client:
            due, tables_due = time.monotonic(), 0.0
            while not self._end.wait(max(0.0, due - time.monotonic())):
                due = max(due + 1.0, time.monotonic())
                has_time = time.monotonic() >= tables_due
                for name in names:
                    self._ask(client, "status", f"/connectors/{name}/status")
                    if has_time:
                        self._ask(client, "tables", f"/connectors/{name}/tables")
                tables_due = time.monotonic() + SLOW_SECONDS if has_time else tables_due

    def _ask_all(self) -> None:
        with httpx.Client(base_url=self._address, timeout=60) as client:
            turn, due = 0, time.monotonic()
            while not self._end.wait(max(0.0, due - time.monotonic())):
                due = max(due + 1.0, time.monotonic())
                self._ask(client, "all", "/connectors?expand=status&expand=info")
                if turn % int(SLOW_SECONDS) == 0:
                    self._ask(client, "query", "/query", QUERY)
                    self._ask(client, "figures", "/metrics")
                    self._ask(client, "probe", "/health/ready")
                turn += 1

    def _listen(self) -> None:
        with httpx.Client(base_url=self._address, timeout=60) as client, client.stream("GET", "/events") as answer:
            for _ in answer.iter_lines():
                if self._end.is_set():
                    return
