"""All connectors of one server: made, changed, removed and kept at what is wanted of them.

Everything is stored before it takes effect, and only the store is asked at a start: whatever killed the last server,
the next one brings every connector to its target. No method waits for a source or a lake, but for `delete` and `close`,
which wait for runs to end. Plain methods and values: the REST API, SQL and tests all call these.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tailrace.configuration.reading import Configuration, redacted, require_given_again, unredacted
from tailrace.connector.connector import Connector, Status
from tailrace.connector.drop import drop_source
from tailrace.engine.door import Engine
from tailrace.engine.spark.engine import SparkEngine
from tailrace.engine.spark.session import LazySession, session
from tailrace.lake.formats import format_named
from tailrace.lake.home import LakeHome
from tailrace.server.errors import NotFoundError, RequestConflictError, RequestError
from tailrace.server.supervisor._admission import Admission, ServerRules
from tailrace.server.supervisor.asking import SourceRequests
from tailrace.server.supervisor.home import ServerHome, require_name
from tailrace.server.supervisor.hosted import Hosted, Hosting, shown_state
from tailrace.server.supervisor.hub import Hub
from tailrace.server.supervisor.lifecycle import Life, Phase, Removed, RestartAsked, Target
from tailrace.server.supervisor.own_parts import OwnParts
from tailrace.server.supervisor.store import Changes, Config, Store, StoredConfig, StoredConnector, Who
from tailrace.settings import LOCAL_SPARK, ConnectorSettings, SparkSettings
from tailrace.source.kinds import source_of

END_SECONDS = 60.0
"""How long a removal waits for a run to end."""
NAME = "name"

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class ConnectorView:
    """One connector at one moment. Its config may hold secrets: show `redacted(config)`."""

    name: str
    config: Mapping[str, str]
    version: int
    life: Life
    status: Status | None
    """Of its run; None where there is none."""

    @property
    def state(self) -> str:
        """Kafka Connect's word for it."""
        return shown_state(self.life, self.status)

    @property
    def trace(self) -> str | None:
        """What the last run ended with, where none has got further since."""
        return self.life.trace if self.life.phase in (Phase.WAITING, Phase.FAILED) else None


class Supervisor:
    """Any thread. Edits of configurations are made one after another."""

    def __init__(
        self,
        home: ServerHome,
        store: Store,
        spark: SparkSettings = LOCAL_SPARK,
        signal_folder: Path | None = None,
        engine: Callable[[LazySession], Engine] = SparkEngine,
    ) -> None:
        """`signal_folder` may have files of signals, as the home may. `engine` makes what moves a connector's rows."""
        self.home = home
        self.hub = Hub()
        self._store, self._spark = store, spark
        folders = [home.path, *([signal_folder] if signal_folder else [])]
        self._admission = Admission(home, ServerRules(spark, folders))
        places = {"log_path": home.spark_log, "lake": home.path, "scratch": home.scratch}
        start = partial(session, format_named(ConnectorSettings.format), brief=False, settings=spark, **places)
        self.session = LazySession(start, master=spark.master)
        """One for all connectors, started when the first of them needs it."""
        self._engine = partial(engine, self.session)
        self._editing = threading.RLock()
        self._hosted: dict[str, Hosted] = {}
        self._removing: set[str] = set()
        self._requests = SourceRequests()
        self.own = OwnParts(home.messages, self.session, home.path, store.address, self._engine)

    def begin(self) -> None:
        """Bring every stored connector to its target."""
        with self._editing:
            for stored in self._store.all():
                self._admission.take_stored(stored)
                self._host(stored)

    def close(self, seconds: float = END_SECONDS) -> list[str]:
        """End every run and wait for it; targets stay as they are. The names of those that have not ended in time: they
        are left as after a crash."""
        with self._editing:
            hosted = list(self._hosted.values())
        for each in hosted:
            each.hear(Removed())
        deadline = time.monotonic() + seconds
        late = [each.name for each in hosted if not each.wait_for_end(max(0.0, deadline - time.monotonic()))]
        self.session.__exit__()
        self._store.close()
        return late

    def names(self) -> list[str]:
        return sorted(self._hosted)

    def require(self, name: str) -> None:
        """An error unless there is a connector of this name."""
        self._find(name)

    def view(self, name: str) -> ConnectorView:
        """Does not wait for anything."""
        return _view(self._find(name))

    def views(self) -> list[ConnectorView]:
        """By name. Does not wait for anything."""
        return [_view(hosted) for _, hosted in sorted(self._hosted.copy().items())]

    def configuration(self, name: str) -> Configuration:
        """With its secrets. A definite error where it cannot be read any more."""
        return self._admission.read(name, self._find(name).stored.config)

    def lake_home(self, name: str) -> LakeHome:
        """Where the connector's lake is, or will be."""
        hosted = self._find(name)
        stored = hosted.stored
        if hosted.lake is None or hosted.lake[0] is not stored:
            hosted.lake = stored, LakeHome(self.configuration(name).settings.lake)
        return hosted.lake[1]

    def lake(self, name: str) -> LakeHome:
        """The connector's lake; a conflict as long as it has none."""
        home = self.lake_home(name)
        if home.source() is None:
            raise RequestConflictError(f"connector {name} has no lake yet", "it has one once it has reached its source")
        return home

    def history(self, name: str, before: int | None = None, limit: int | None = None) -> list[StoredConfig]:
        return self._store.history(name, before, limit)

    def create(self, name: str, config: Config, target: Target = Target.RUNNING, who: Who = None) -> ConnectorView:
        """A new connector. Nothing is stored if its configuration makes no sense or takes another one's place."""
        config = _with_name(require_name(name), config)
        with self._editing:
            if name in self._hosted:
                raise RequestConflictError(f"Connector {name} already exists")
            with self._admission.admitted(name, config):
                stored = self._store.add(name, config, target, who)
            self._host(stored)
        return self.view(name)

    def put(
        self, name: str, config: Config, expected: int | None = None, who: Who = None
    ) -> tuple[ConnectorView, bool]:
        """Another configuration, with which the connector begins again; whether it was made by this. What is redacted
        in it stays what it was. With `expected`, only if that is still the stored version."""
        with self._editing:
            if name not in self._hosted and expected is None:
                return self.create(name, config, who=who), True
            stored = self._store.find(name)
            return self._alter(stored, _with_name(name, config), expected, who), False

    def patch(self, name: str, changes: Changes, expected: int | None = None, who: Who = None) -> ConnectorView:
        """The configuration with some properties changed, and those removed that are None."""
        with self._editing:
            stored = self._store.find(name)
            given = {key: value for key, value in changes.items() if value is not None}
            kept = {key: value for key, value in redacted(stored.config).items() if key not in changes}
            return self._alter(stored, _with_name(name, kept | given), expected, who)

    def want(self, name: str, target: Target) -> None:
        """Stored when this returns; done soon after."""
        self._steady(name).want(target)

    def kept_stopped(self, name: str) -> AbstractContextManager[None]:
        """For what may only be done to a stopped connector: it stays stopped inside. A conflict if it is not."""
        return self._find(name).kept_stopped()

    def asking_source(self) -> AbstractContextManager[None]:
        """For a request that waits for a source, which may not answer. Too many at once are told to come back."""
        return self._requests.one()

    def restart(self, name: str, *, only_failed: bool = False) -> ConnectorView:
        """Begin again, also after a definite error."""
        hosted = self._steady(name)
        if not only_failed or hosted.life.phase in (Phase.FAILED, Phase.WAITING):
            hosted.hear(RestartAsked())
        return self.view(name)

    def delete(self, name: str, *, drop: bool = False, who: Who = None) -> list[str]:
        """End it and forget it; its lake stays. What it made at the source stays too, unless `drop`: then that goes
        first, so that nothing is left there that no connector knows. Says what was dropped."""
        with self._editing:
            hosted, stored = self._steady(name), self._store.find(name)
            self._removing.add(name)
        try:
            dropped = []
            if drop:
                with self.asking_source():
                    dropped = _drop(hosted, self._admission.read(name, stored.config))
            with self._editing:
                self._store.remove(name, who)
                del self._hosted[name]
                self._admission.remove(name, hosted)
        finally:
            self._removing.discard(name)
        hosted.hear(Removed())
        hosted.wait_for_end(END_SECONDS)
        return dropped

    def _find(self, name: str) -> Hosted:
        hosted = self._hosted.get(name)
        if hosted is None:
            raise NotFoundError.connector(name)
        return hosted

    def _steady(self, name: str) -> Hosted:
        """A connector that is not being removed. While one is, its name is taken and nothing else is done to it."""
        hosted = self._find(name)
        if name in self._removing:
            raise RequestConflictError(f"connector {name} is being removed", "wait until it is gone")
        return hosted

    def _host(self, stored: StoredConnector) -> None:
        name = stored.name
        set_target, tell = partial(self._store.set_target, name), partial(self.hub.tell, name)
        hosting = Hosting(build=lambda: self._build(name), store_target=set_target, tell=tell)
        self._hosted[name] = hosted = Hosted(stored, hosting)
        hosted.begin()

    def _build(self, name: str) -> Connector:
        with self._editing:
            stored = self._store.find(name)
            # What a reference leads to may be another than when the configuration was accepted.
            with self._admission.admitted(name, stored.config) as configuration:
                pass
        return _connector(replace(configuration.settings, spark=self._spark), configuration, self._engine())

    def _alter(self, stored: StoredConnector, shown: Config, expected: int | None, who: Who) -> ConnectorView:
        """Another configuration, with secrets as they were shown where they stay."""
        stored.require_version(expected)
        hosted = self._steady(stored.name)
        require_given_again(shown, stored.config)
        config = unredacted(shown, stored.config)
        with self._admission.admitted(stored.name, config):
            hosted.stored = self._store.set_config(stored, config, who)
        hosted.hear(RestartAsked())
        return self.view(stored.name)


def _connector(settings: ConnectorSettings, configuration: Configuration, engine: Engine) -> Connector:
    if isinstance(settings.lake, Path):
        settings.lake.parent.mkdir(0o700, parents=True, exist_ok=True)
    return Connector(settings, source_of(configuration.dsn, **configuration.source_options), engine)


def _drop(hosted: Hosted, configuration: Configuration) -> list[str]:
    """Drop what the connector made at its source. It is stopped first, and stored as such: a run would fail without
    what is dropped. What cannot be dropped leaves it as it was."""
    target = hosted.life.target
    hosted.want(Target.STOPPED)
    try:
        if not hosted.wait_for_end(END_SECONDS):
            raise RequestConflictError(f"connector {hosted.name} has not ended yet", "try it again")
        lake = configuration.settings.lake
        if LakeHome(lake).source() is None:
            return []
        return drop_source(source_of(configuration.dsn, **configuration.source_options), lake)
    except BaseException:
        hosted.want(target)
        raise


def _view(hosted: Hosted) -> ConnectorView:
    stored = hosted.stored
    return ConnectorView(stored.name, stored.config, stored.version, hosted.life, hosted.status())


def _with_name(name: str, config: Mapping[str, str]) -> dict[str, str]:
    """With the name in it, as Kafka Connect has it."""
    given = config.get(NAME, name)
    if given != name:
        raise RequestError(
            f"Connector name configuration ({given}) doesn't match connector name in the URL ({name})", "leave one out"
        )
    return dict(config) | {NAME: name}
