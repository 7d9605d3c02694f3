"""A server that a test drives: in a thread of the test, or as `tailrace serve` in a process of its own."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Queue
from typing import Any
from urllib.parse import quote, urlsplit

import httpx
from tests import journey
from tests.doors.one_thread import OneThread
from tests.postgres import wait_until

from tailrace.server.serving import ServerSettings, Serving, serve
from tailrace.server.supervisor.supervisor import Supervisor

WAIT_SECONDS = 60.0
CLASS = "io.debezium.connector.postgresql.PostgresConnector"


def config_for(dsn: str, **more: str) -> dict[str, str]:
    """A connector's configuration, in Debezium's words; `_` in a name stands for a dot."""
    address = urlsplit(dsn)
    return {
        "connector.class": CLASS,
        "database.hostname": address.hostname or "",
        "database.port": str(address.port),
        "database.user": address.username or "",
        "database.dbname": address.path.strip("/"),
        "lake.publish.interval.ms": "100",
        **{name.replace("_", "."): value for name, value in more.items()},
    }


@dataclass
class Client:
    """What a test asks of a server over HTTP."""

    http: httpx.Client

    def ask(self, method: str, path: str, body: Any = None, status: int | tuple[int, ...] = (), **more: Any) -> Any:
        """The answer's JSON; fails where the status is another one than expected (by default: any error)."""
        answer = self.http.request(method, path, json=body, **more)
        wanted = (status,) if isinstance(status, int) else status
        assert answer.status_code in wanted if wanted else answer.status_code < 400, (answer.status_code, answer.text)
        return answer.json() if answer.content else None

    def create(self, name: str, config: Mapping[str, str], **more: str) -> Any:
        return self.ask("POST", "/connectors", {"name": name, "config": dict(config), **more}, 201)

    def status(self, name: str) -> Any:
        return self.ask("GET", f"/connectors/{quote(name)}/status")

    def wait_for(self, name: str, state: str, seconds: float = WAIT_SECONDS) -> Any:
        """Until a connector is in this state, as the API shows it."""
        seen: list[Any] = [None]

        def reached() -> bool:
            seen[0] = self.status(name)
            return bool(seen[0]["connector"]["state"] == state)

        try:
            wait_until(reached, seconds)
        except AssertionError:
            raise AssertionError(f"{name} is not {state} within {seconds} s: {seen[0]}") from None
        return seen[0]


@dataclass
class Served(Client):
    """A server in a thread of this process, and a client of it."""

    supervisor: Supervisor
    address: str


@contextmanager
def serving(home: Path, **more: Any) -> Iterator[Served]:
    """A server that runs inside the `with`, at a free port. Its connectors move rows in a thread; those of `process` do
    it in Spark."""
    settings = replace(ServerSettings(home, port=0), **more)
    answers: Queue[Serving | BaseException] = Queue()

    def run() -> None:
        try:
            serve(settings, answers.put, lambda _: OneThread())
        except BaseException as error:
            answers.put(error)

    thread = threading.Thread(target=run, name="server")
    thread.start()
    found = answers.get(timeout=WAIT_SECONDS)
    if isinstance(found, BaseException):
        raise found
    headers = {}
    if settings.token_file is not None:
        headers["authorization"] = f"Bearer {settings.token_file.read_text().strip()}"
    try:
        with httpx.Client(base_url=found.address, timeout=WAIT_SECONDS, headers=headers, verify=False) as http:
            yield Served(http, found.supervisor, found.address)
    finally:
        found.end()
        thread.join(WAIT_SECONDS)


@dataclass
class Process(Client):
    """`tailrace serve` in a process of its own, and a client of it."""

    process: subprocess.Popen[str]
    address: str
    printed: dict[str, str]
    """What it printed to `stdout` after its address and to `stderr`; there when it has ended."""


@contextmanager
def process(home: Path, *arguments: str, **variables: str) -> Iterator[Process]:
    """`tailrace serve` at a free port; killed at the end, if it lives."""
    started = journey.start("serve", "--home", str(home), "--listen", "127.0.0.1:0", *arguments, **variables)
    drains: list[threading.Thread] = []
    try:
        assert started.stdout is not None
        assert started.stderr is not None
        line = started.stdout.readline()
        found = re.match(r"listening on (\S+)", line)
        assert found, (line, started.communicate(timeout=WAIT_SECONDS))
        # What it prints later must not fill the pipes.
        printed: dict[str, str] = {}
        streams = {"stdout": started.stdout, "stderr": started.stderr}
        drains = [
            threading.Thread(target=lambda name, stream: printed.update({name: stream.read()}), args=each)
            for each in streams.items()
        ]
        for drain in drains:
            drain.start()
        with httpx.Client(base_url=found[1], timeout=WAIT_SECONDS) as http:
            yield Process(http, started, found[1], printed)
    finally:
        started.kill()
        started.wait()
        for drain in drains:
            drain.join()
        for stream in (started.stdout, started.stderr):
            if stream is not None:
                stream.close()
