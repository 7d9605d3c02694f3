"""Which configurations a server runs: they can be read, whoever sent them may ask for what they say, and no other
connector has what they need for themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tailrace.configuration.reading import Configuration, read
from tailrace.configuration.secrets import has_reference
from tailrace.errors import TailraceError
from tailrace.server.errors import RequestError
from tailrace.server.supervisor.home import ServerHome
from tailrace.server.supervisor.hosted import Hosted
from tailrace.server.supervisor.reservations import Reservation, Reservations
from tailrace.server.supervisor.store import StoredConnector
from tailrace.settings import LOCAL_SPARK, SparkSettings

SHOWN = ("name", "topic.prefix")
"""What the API shows as it is: in offsets, for one."""


@dataclass(frozen=True)
class ServerRules:
    """What a server asks of a configuration beyond what any connector needs: whoever sends it may be far away."""

    spark: SparkSettings
    signal_folders: Sequence[Path]
    """Where a file of signals may lie."""

    def require(self, config: Mapping[str, str], found: Configuration) -> None:
        """A request error for a configuration that this server does not run."""
        for key in SHOWN:
            if has_reference(config.get(key, "")):
                raise RequestError(f"{key} is shown to everyone, so nothing of it may be a reference", "write it out")
        lake = found.settings.lake
        if isinstance(lake, Path) and not lake.is_absolute():
            # The next server may be started elsewhere, and would begin another lake.
            raise RequestError(f"lake.path '{lake}' is relative", "give the whole path, or none")
        if found.settings.spark not in (LOCAL_SPARK, self.spark):
            raise RequestError(
                "Spark is one for all connectors of a server", "leave spark.* out here: tailrace serve --spark-master"
            )
        self._require_signal_file(found.settings.signal_file)

    def _require_signal_file(self, path: Path | None) -> None:
        """Lines of it can be read over REST, so it must be a file that is there for that."""
        if path is None or any(path.resolve().is_relative_to(folder.resolve()) for folder in self.signal_folders):
            return
        raise RequestError(
            "signal.file lies outside the folders for files of signals",
            f"choose one below {self.signal_folders[0]}, or start the server with: --signal-folder DIR",
        )


class Admission:
    """Configurations that may run, and what their connectors have for themselves. One thread at a time."""

    def __init__(self, home: ServerHome, rules: ServerRules) -> None:
        self._home = home
        self._rules = rules
        self._reservations = Reservations()
        self._leaving: list[Hosted] = []
        """Removed, with a run that has not ended: what they have is still taken."""

    def read(self, name: str, config: Mapping[str, str]) -> Configuration:
        return read({"lake.path": str(self._home.lake_of(name))} | dict(config))

    def take_stored(self, stored: StoredConnector) -> None:
        """For one that was admitted before. One that cannot be read, because a secret is gone, has no run and shares
        nothing."""
        with suppress(TailraceError):
            reservation = Reservation.of(stored.name, self.read(stored.name, stored.config))
            self._reservations.take(stored.name, reservation)

    @contextmanager
    def admitted(self, name: str, config: Mapping[str, str]) -> Iterator[Configuration]:
        """It can be read, may run here, and no other connector has its lake or its slot. Where what is done inside
        fails, the connector has what it had before."""
        configuration = self.read(name, config)
        self._rules.require(config, configuration)
        for gone in [hosted for hosted in self._leaving if not hosted.life.has_run]:
            self._leaving.remove(gone)
            self._reservations.leave(gone)
        before = self._reservations.take(name, Reservation.of(name, configuration))
        try:
            yield configuration
        except BaseException:
            self._reservations.leave(name)
            if before is not None:
                self._reservations.take(name, before)
            raise

    def remove(self, name: str, hosted: Hosted) -> None:
        """The name is free. What the connector has is free when its run has ended."""
        self._reservations.hand_over(name, hosted)
        self._leaving.append(hosted)
