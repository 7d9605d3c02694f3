"""`tailrace sync --ui`: the console of the run in this process, and the run as the console may pause and stop it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from tailrace.cli.lake.ui import ConsoleCommand
from tailrace.errors import DefiniteError

if TYPE_CHECKING:
    from tailrace.configuration.reading import Configuration
    from tailrace.connector.connector import Connector
    from tailrace.server.supervisor.hub import Told

WAIT_SECONDS = 0.2
STOPPED = "stopped in the console, and can be resumed there; Ctrl-C ends it"


class ShownRun(Protocol):
    """The run of a command, from its beginning to its end."""

    def begin(self) -> None: ...

    def wait(self) -> bool:
        """For a moment; whether there is more to wait for. Raises the error that ended the run."""

    def end(self) -> None:
        """Any signal handler."""


@dataclass(frozen=True)
class _LoneRun:
    """Without a console: the run ends when its connector does."""

    connector: Connector

    def begin(self) -> None:
        self.connector.start()

    def wait(self) -> bool:
        return not self.connector.wait(WAIT_SECONDS)

    def end(self) -> None:
        self.connector.stop()


@dataclass(frozen=True)
class WantedConsole:
    """What a person has asked for, and what else of the command the console shows."""

    command: ConsoleCommand
    properties: Mapping[str, str]


def wanted_console(command: ConsoleCommand, properties: Mapping[str, str], *, is_wanted: bool) -> WantedConsole | None:
    """None unless it is wanted. A definite error for options of a console that is not."""
    if not is_wanted and command != ConsoleCommand():
        raise DefiniteError("--listen, --token-file and --open are for the console", "add --ui")
    return WantedConsole(command, properties) if is_wanted else None


@contextmanager
def shown_run(
    connector: Connector, configuration: Configuration, console: WantedConsole | None, say: Callable[[str], None]
) -> Iterator[ShownRun]:
    """The run, with its console if one is wanted, as long as the `with` lasts. `say` prints a line."""
    if console is None:
        yield _LoneRun(connector)
        return
    from tailrace.server.lake_host.host import connector_name, shown_config
    from tailrace.server.lake_host.serving import console_beside
    from tailrace.server.supervisor.hub import LifeChanged
    from tailrace.server.supervisor.lifecycle import Phase

    # In offsets, the source is called as the lake knows it.
    named = replace(configuration, name=connector_name(configuration.settings.lake), server="")
    shown = shown_config(named, console.properties)

    def hear(_: str, told: Told) -> None:
        if isinstance(told, LifeChanged) and told.life.phase is Phase.IDLE:
            say(STOPPED)

    with console_beside(connector, named, shown, console.command.reached()) as beside:
        beside.hub.subscribe(hear)
        console.command.show(beside.address, beside.warnings, say)
        yield beside.run
