"""One lake as a host of one connector, without a server: what `tailrace ui` and `tailrace sync --ui` show.

The connector has the name of the lake's folder. What it is, is read from the lake's files; what is asked of it becomes
a signal or an edit there, as from the command line. What needs a server of many connectors is refused with the rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from tailrace.configuration.properties import CLASS
from tailrace.configuration.reading import Configuration
from tailrace.connector.connector import Status
from tailrace.lake.home import LakeHome
from tailrace.model.lake_address import LakeAddress
from tailrace.server.errors import NotFoundError, RequestConflictError
from tailrace.server.supervisor.asking import SourceRequests
from tailrace.server.supervisor.hub import Hub
from tailrace.server.supervisor.lifecycle import Life, Target
from tailrace.server.supervisor.own_parts import OwnParts
from tailrace.server.supervisor.store import Changes, Config, StoredConfig, Who
from tailrace.server.supervisor.supervisor import ConnectorView
from tailrace.source.kinds import words_of

VERSION = 1
"""Of a configuration that no one can change here."""
REFUSALS = {
    "create": "this console shows one lake; many connectors are for a server: tailrace serve",
    "delete": "a lake is given up on the command line: tailrace drop DSN LAKE",
    "configure": "the options of tailrace sync are its configuration: start it again with others",
}
"""What no host of one lake can do, by action."""
NO_ADDRESS = "the address of the source is not known here: tailrace ui LAKE --dsn DSN"


class LakeRun(Protocol):
    """The run of the lake's connector: of this process, or of another one that is looked at. Any thread."""

    @property
    def life(self) -> Life: ...

    @property
    def status(self) -> Status | None:
        """None where there is no run."""
        ...

    @property
    def refusals(self) -> Mapping[str, str]:
        """What cannot be done to this run, by action, each with the rule."""
        ...

    def want(self, target: Target) -> None:
        """A conflict where the run is another process's."""
        ...

    def restart(self, *, only_failed: bool) -> None:
        """End the run and begin another. A conflict where it is another process's."""
        ...

    def kept_stopped(self) -> AbstractContextManager[None]:
        """No run of ours begins inside. An error unless the lake has none."""
        ...


class LakeHost:
    """A `ConnectorHost` of one connector."""

    def __init__(self, configuration: Configuration, shown: Mapping[str, str], hub: Hub, run: LakeRun) -> None:
        """`shown` is the configuration as properties, secrets and all."""
        self.hub = hub
        self.own = OwnParts()
        self.name = configuration.name
        self._configuration = configuration
        self._shown = shown
        self._home = LakeHome(configuration.settings.lake)
        self._run = run
        self._requests = SourceRequests()

    @property
    def refusals(self) -> Mapping[str, str]:
        """What cannot be done here, by action, each with the rule."""
        return {**REFUSALS, **self._run.refusals, **({} if self._configuration.dsn else {"verify": NO_ADDRESS})}

    def names(self) -> list[str]:
        return [self.name]

    def require(self, name: str) -> None:
        if name != self.name:
            raise NotFoundError.connector(name)

    def view(self, name: str) -> ConnectorView:
        self.require(name)
        return ConnectorView(self.name, self._shown, VERSION, self._run.life, self._run.status)

    def views(self) -> list[ConnectorView]:
        return [self.view(self.name)]

    def configuration(self, name: str) -> Configuration:
        self.require(name)
        return self._configuration

    def lake_home(self, name: str) -> LakeHome:
        self.require(name)
        return self._home

    def lake(self, name: str) -> LakeHome:
        home = self.lake_home(name)
        if home.source() is None:
            raise RequestConflictError(f"connector {name} has no lake yet", "it has one once it has reached its source")
        return home

    def history(self, name: str, before: int | None = None, limit: int | None = None) -> list[StoredConfig]:
        """None is kept."""
        self.require(name)
        return []

    def create(self, name: str, config: Config, target: Target = Target.RUNNING, who: Who = None) -> ConnectorView:
        raise RequestConflictError(*_refusal("create"))

    def put(
        self, name: str, config: Config, expected: int | None = None, who: Who = None
    ) -> tuple[ConnectorView, bool]:
        raise RequestConflictError(*_refusal("configure" if name == self.name else "create"))

    def patch(self, name: str, changes: Changes, expected: int | None = None, who: Who = None) -> ConnectorView:
        self.require(name)
        raise RequestConflictError(*_refusal("configure"))

    def want(self, name: str, target: Target) -> None:
        self.require(name)
        self._run.want(target)

    def kept_stopped(self, name: str) -> AbstractContextManager[None]:
        self.require(name)
        return self._run.kept_stopped()

    def asking_source(self) -> AbstractContextManager[None]:
        return self._requests.one()

    def restart(self, name: str, *, only_failed: bool = False) -> ConnectorView:
        self.require(name)
        self._run.restart(only_failed=only_failed)
        return self.view(name)

    def delete(self, name: str, *, drop: bool = False, who: Who = None) -> list[str]:
        self.require(name)
        raise RequestConflictError(*_refusal("delete"))


def connector_name(lake: LakeAddress) -> str:
    """What the connector of a lake is called here: as its folder, in letters that every client can write."""
    name = lake.resolve().name if isinstance(lake, Path) else lake.name
    return name.encode("utf-8", "replace").decode() or "lake"


def shown_config(configuration: Configuration, given: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a person would write in a file to have this connector: of a lake that is only looked at, what is known."""
    words, lake = words_of(configuration.kind), configuration.settings.lake
    known = {"name": configuration.name, CLASS: words.classes[-1], "lake.path": str(lake)}
    record = LakeHome(lake).source()
    if configuration.dsn:
        known |= words.address(configuration.dsn)
    elif record is not None:
        known[words.clauses["database"]] = record.identity["database"]
    return known | dict(given or {})


def _refusal(action: str) -> tuple[str, str]:
    message, _, hint = REFUSALS[action].partition(": ")
    return message, hint
