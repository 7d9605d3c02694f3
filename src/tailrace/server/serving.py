"""A server of many connectors, from its socket to its end.

The socket is bound first: an address that is taken is told before any connector starts. Told to stop, it answers no
more, then every run ends after the batch in hand; what does not end in time is left as after a crash, which every run
survives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tailrace.connector.messages import messages_to, owning
from tailrace.engine.door import Engine
from tailrace.engine.spark.engine import SparkEngine
from tailrace.engine.spark.session import LazySession
from tailrace.server.answering import Answering, Reached, bound_to
from tailrace.server.supervisor.home import ServerHome
from tailrace.server.supervisor.store import Store
from tailrace.server.supervisor.supervisor import Supervisor
from tailrace.settings import LOCAL_SPARK, SparkSettings


@dataclass(frozen=True)
class ServerSettings:
    """Where a server keeps its state and how it is reached."""

    home: Path
    host: str = "127.0.0.1"
    port: int = 8083
    token_file: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None
    state_url: str | None = None
    spark: SparkSettings = LOCAL_SPARK
    signal_folder: Path | None = None
    """Where files of signals may lie, besides the home."""

    @property
    def reached(self) -> Reached:
        return Reached(self.host, self.port, self.token_file, self.tls_cert, self.tls_key)


@dataclass(frozen=True)
class Serving:
    """A server that is about to answer."""

    address: str
    """As a URL."""
    supervisor: Supervisor
    end: Callable[[], None]
    """Any thread: stop as a signal does."""
    warnings: Sequence[str] = ()
    """What a person should see to."""


def serve(
    settings: ServerSettings,
    ready: Callable[[Serving], None],
    engine: Callable[[LazySession], Engine] = SparkEngine,
) -> list[str]:
    """Until a signal, or `Serving.end`, says to stop. `ready` is called when the address is ours, before connectors
    start. The names of connectors that did not end in time. Meanwhile the thread that calls is the server's."""
    reached = settings.reached
    reached.guard()
    home = ServerHome(settings.home)
    with ExitStack() as stack:
        stack.enter_context(home.locked())
        stack.enter_context(owning(home.messages))
        stack.enter_context(messages_to(home.messages))
        bound = stack.enter_context(bound_to(settings.host, settings.port))
        store = Store.in_folder(home.path) if settings.state_url is None else Store.at(settings.state_url)
        stack.callback(store.close)
        store.lock()
        supervisor = Supervisor(home, store, settings.spark, settings.signal_folder, engine)
        answering = Answering.of(bound, reached, supervisor)
        stack.enter_context(answering.stopped_by_signals())
        ready(Serving(answering.address, supervisor, answering.end, answering.warnings))
        supervisor.begin()
        try:
            answering.run()
        finally:
            late = supervisor.close()
    return late
