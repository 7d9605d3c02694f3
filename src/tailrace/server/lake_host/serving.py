"""The console of one lake at an address of its own: beside another process's run, or in the run's own process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from urllib.parse import quote

from tailrace.configuration.reading import Configuration
from tailrace.connector.connector import Connector
from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.model.lake_address import LakeAddress
from tailrace.server.answering import Answering, Reached, bound_to
from tailrace.server.lake_host.host import LakeHost
from tailrace.server.lake_host.live import LiveRun
from tailrace.server.lake_host.outside import OutsideRun
from tailrace.server.supervisor.hub import Hub


def require_home(lake: LakeAddress) -> LakeHome:
    """The home of a lake that can be looked at from here. A definite error where it is no lake, or its home is on
    another machine."""
    home = LakeHome.find(lake)
    if not home.is_here:
        message = (
            f"the home of {home.lake} is not in {home.folder}: log, signals and edits of this lake are in its home"
        )
        raise DefiniteError(message, "name it: --home FOLDER; or run this where tailrace sync runs")
    return home


@dataclass(frozen=True)
class LakeServing:
    """A console that is about to answer."""

    address: str
    """Of the connector's page, as a URL."""
    warnings: list[str]
    """What a person should see to."""
    end: Callable[[], None]
    """Any thread: stop as a signal does."""


def serve_lake(
    configuration: Configuration, shown: Mapping[str, str], reached: Reached, ready: Callable[[LakeServing], None]
) -> None:
    """The console of a lake that this process only looks at, until a signal or `LakeServing.end`. `ready` is called
    when the address is ours."""
    home, hub = require_home(configuration.settings.lake), Hub()
    run = OutsideRun(home, partial(hub.tell, configuration.name))
    host = LakeHost(configuration, shown, hub, run)
    with bound_to(reached.host, reached.port) as bound:
        answering = Answering.of(bound, reached, host, host.refusals)
        with answering.stopped_by_signals():
            run.begin()
            ready(LakeServing(console_of(answering, host), answering.warnings, answering.end))
            watching = threading.Thread(
                target=run.watch, args=[answering.parts.closing, lambda: hub.listeners > 0], name="looking", daemon=True
            )
            watching.start()
            answering.run()
        watching.join()


@dataclass(frozen=True)
class ConsoleBeside:
    """A console in the process of the run that it shows."""

    run: LiveRun
    hub: Hub
    address: str
    """Of the page, as a URL."""
    warnings: list[str]


@contextmanager
def console_beside(
    connector: Connector, configuration: Configuration, shown: Mapping[str, str], reached: Reached
) -> Iterator[ConsoleBeside]:
    """The console of a lake whose connector runs in this process, as long as the `with` lasts."""
    hub = Hub()
    run = LiveRun(connector, partial(hub.tell, configuration.name))
    host = LakeHost(configuration, shown, hub, run)
    with bound_to(reached.host, reached.port) as bound:
        answering = Answering.of(bound, reached, host, host.refusals)
        serving = threading.Thread(target=answering.run, name="console", daemon=True)
        serving.start()
        try:
            yield ConsoleBeside(run, hub, console_of(answering, host), answering.warnings)
        finally:
            answering.end()
            serving.join()


def console_of(answering: Answering, host: LakeHost) -> str:
    """The page of the lake's connector."""
    return f"{answering.address}/ui/c/{quote(host.name, safe='')}"
