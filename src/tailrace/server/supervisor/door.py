"""What routes ask of whoever has the connectors: a server's supervisor, or one lake that is looked at from outside."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from tailrace.configuration.reading import Configuration
from tailrace.lake.home import LakeHome
from tailrace.server.supervisor.hub import Hub
from tailrace.server.supervisor.lifecycle import Target
from tailrace.server.supervisor.own_parts import OwnParts
from tailrace.server.supervisor.store import Changes, Config, StoredConfig, Who
from tailrace.server.supervisor.supervisor import ConnectorView


class ConnectorHost(Protocol):
    """Any thread. What one lake cannot do is refused as a conflict."""

    @property
    def hub(self) -> Hub:
        """What connectors tell."""

    @property
    def own(self) -> OwnParts:
        """What there is besides connectors."""

    def names(self) -> list[str]: ...

    def require(self, name: str) -> None:
        """An error unless there is a connector of this name."""

    def view(self, name: str) -> ConnectorView:
        """Does not wait for anything."""

    def views(self) -> list[ConnectorView]:
        """By name. Does not wait for anything."""

    def configuration(self, name: str) -> Configuration:
        """With its secrets, and without a connection string where the source's address is not known. A definite error
        where it cannot be read any more."""

    def lake_home(self, name: str) -> LakeHome:
        """Where the connector's lake is, or will be."""

    def lake(self, name: str) -> LakeHome:
        """The connector's lake; a conflict as long as it has none."""

    def history(self, name: str, before: int | None = None, limit: int | None = None) -> list[StoredConfig]:
        """Its configurations, oldest first. With `limit`, only the newest of them, `before` a version."""

    def create(self, name: str, config: Config, target: Target = Target.RUNNING, who: Who = None) -> ConnectorView:
        """`who` is kept in the history, here and below."""

    def put(
        self, name: str, config: Config, expected: int | None = None, who: Who = None
    ) -> tuple[ConnectorView, bool]: ...

    def patch(self, name: str, changes: Changes, expected: int | None = None, who: Who = None) -> ConnectorView: ...

    def want(self, name: str, target: Target) -> None:
        """Stored when this returns; done soon after."""

    def kept_stopped(self, name: str) -> AbstractContextManager[None]:
        """For what may only be done to a stopped connector: it stays stopped inside. An error if it is not."""

    def asking_source(self) -> AbstractContextManager[None]:
        """For a request that waits for a source, which may not answer. Too many at once are told to come back."""

    def restart(self, name: str, *, only_failed: bool = False) -> ConnectorView:
        """Begin again, also after a definite error."""

    def delete(self, name: str, *, drop: bool = False, who: Who = None) -> list[str]:
        """End it and forget it; its lake stays."""
