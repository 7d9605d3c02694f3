"""Consoles of one lake that a test drives, in threads of its own process: beside a run, and from outside."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from queue import Queue
from urllib.parse import unquote

import httpx
from tests.doors.one_thread import OneThread
from tests.serving import WAIT_SECONDS, Client, config_for

from tailrace.configuration.reading import Configuration, read
from tailrace.connector.connector import Connector
from tailrace.engine.door import Engine
from tailrace.server.answering import Reached
from tailrace.server.lake_host.host import connector_name, shown_config
from tailrace.server.lake_host.live import LiveRun
from tailrace.server.lake_host.serving import LakeServing, console_beside, require_home, serve_lake
from tailrace.source.kinds import source_of

FREE = Reached(port=0)


@dataclass
class LakeConsole(Client):
    """A console of one lake, and a client of it."""

    page: str
    """The URL of the connector's page."""

    @property
    def address(self) -> str:
        """Of the server."""
        return self.page.partition("/ui/")[0]

    @property
    def name(self) -> str:
        return unquote(self.page.rpartition("/")[2])


def lake_configuration(lake: Path, dsn: str | None = None) -> Configuration:
    """As `tailrace sync` has it, or, without a database, `tailrace ui`."""
    found = read({"name": "console", **config_for(dsn or "postgresql://nobody@127.0.0.1:1/none")}, lakes=lake.parent)
    settings = replace(found.settings, lake=lake)
    return replace(found, name=connector_name(lake), server="", settings=settings, dsn=found.dsn if dsn else "")


@contextmanager
def console_from_outside(lake: Path, dsn: str | None = None) -> Iterator[LakeConsole]:
    """What `tailrace ui` serves, inside the `with`."""
    require_home(lake)
    found = lake_configuration(lake, dsn)
    ready: Queue[LakeServing | BaseException] = Queue()

    def run() -> None:
        try:
            serve_lake(found, shown_config(found), FREE, ready.put)
        except BaseException as error:
            ready.put(error)

    thread = threading.Thread(target=run, name="ui")
    thread.start()
    serving = ready.get(timeout=WAIT_SECONDS)
    if isinstance(serving, BaseException):
        raise serving
    try:
        with httpx.Client(base_url=serving.address.partition("/ui/")[0], timeout=WAIT_SECONDS) as http:
            yield LakeConsole(http, serving.address)
    finally:
        serving.end()
        thread.join(WAIT_SECONDS)


@contextmanager
def running_with_console(dsn: str, lake: Path, engine: Engine | None = None) -> Iterator[tuple[LakeConsole, LiveRun]]:
    """What `tailrace sync --ui` runs, inside the `with`."""
    found = lake_configuration(lake, dsn)
    connector = Connector(found.settings, source_of(found.dsn), engine or OneThread())
    with console_beside(connector, found, shown_config(found), FREE) as beside:
        beside.run.begin()

        def wait() -> None:
            while beside.run.wait():
                pass

        waiting = threading.Thread(target=wait, name="sync")
        waiting.start()
        try:
            with httpx.Client(base_url=beside.address.partition("/ui/")[0], timeout=WAIT_SECONDS) as http:
                yield LakeConsole(http, beside.address), beside.run
        finally:
            beside.run.end()
            waiting.join(WAIT_SECONDS)
