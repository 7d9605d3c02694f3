"""A server from its socket to its end.

The socket is bound first: an address that is taken is told before any connector starts. Told to stop, it answers no
more, then every run ends after the batch in hand; what does not end in time is left as after a crash, which every run
survives.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import uvicorn
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from tailrace.connector.messages import messages_to, own
from tailrace.engine.door import Engine
from tailrace.engine.spark.engine import SparkEngine
from tailrace.engine.spark.session import LazySession
from tailrace.errors import DefiniteError
from tailrace.server.api.parts import ServerParts
from tailrace.server.app import create_app
from tailrace.server.connections import Connections, watched
from tailrace.server.security import Gate, Guard, exposed_token
from tailrace.server.supervisor.home import ServerHome
from tailrace.server.supervisor.store import Store
from tailrace.server.supervisor.supervisor import Supervisor
from tailrace.settings import LOCAL_SPARK, SparkSettings

GRACE_SECONDS = 5
"""How long answers that are under way may take once we are to stop."""
BACKLOG = 128
PROXIES = "FORWARDED_ALLOW_IPS"
"""Uvicorn's variable: addresses of proxies that are believed when they say who asks."""

logger = logging.getLogger(__name__)


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
    start. The names of connectors that did not end in time. The thread that calls is the server's from then on."""
    guard = Guard.make(settings.host, settings.token_file)
    if (settings.tls_cert is None) != (settings.tls_key is None):
        raise DefiniteError("TLS needs a certificate and its key", "give both: --tls-cert FILE --tls-key FILE")
    home = ServerHome(settings.home)
    with ExitStack() as stack:
        stack.enter_context(home.locked())
        own(home.messages)
        stack.enter_context(messages_to(home.messages))
        bound = stack.enter_context(_bound(settings.host, settings.port))
        store = Store.in_folder(home.path) if settings.state_url is None else Store.at(settings.state_url)
        stack.callback(store.close)
        store.lock()
        supervisor = Supervisor(home, store, settings.spark, settings.signal_folder, engine)
        host, port = bound.getsockname()[:2]
        parts = ServerParts.of(supervisor, f"{host}:{port}")
        server = _Server(_config(settings, guard, parts), parts.closing)
        stack.callback(_stop_on_signals(server))
        scheme = "http" if settings.tls_cert is None else "https"
        address = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        warning = exposed_token(settings.token_file) if settings.token_file is not None else None
        if warning is not None:
            logger.warning(warning)
        ready(Serving(address, supervisor, server.end, [warning] if warning else []))
        supervisor.begin()
        sampling = threading.Thread(target=parts.figures.run, args=[parts.closing], name="figures", daemon=True)
        sampling.start()
        try:
            server.run(sockets=[bound])
        finally:
            parts.closing.set()
            sampling.join()
            parts.queries.close()
            late = supervisor.close()
    return late


class _Server(uvicorn.Server):
    """One whose signals are ours, and that tells long answers to end."""

    def __init__(self, config: uvicorn.Config, closing: threading.Event) -> None:
        super().__init__(config)
        self._closing = closing

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def end(self) -> None:
        self._closing.set()
        self.should_exit = True


def _config(settings: ServerSettings, guard: Guard, parts: ServerParts) -> uvicorn.Config:
    connections = Connections()
    # Inside the gate, which counts by the address that a connection comes from.
    app: Any = ProxyHeadersMiddleware(cast(Any, create_app(parts)), os.environ.get(PROXIES, "127.0.0.1"))
    try:
        config = uvicorn.Config(
            Gate(app, guard, connections=connections),
            http=watched(connections),
            ws="none",
            proxy_headers=False,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=GRACE_SECONDS,
            ssl_certfile=settings.tls_cert,
            ssl_keyfile=settings.tls_key,
        )
        config.load()
    except OSError as error:
        raise DefiniteError(
            f"TLS does not work with these files: {error.strerror or error}", "see --tls-cert"
        ) from None
    return config


@contextmanager
def _bound(host: str, port: int) -> Iterator[socket.socket]:
    with ExitStack() as stack:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            # Named TCP, it has asyncio send every part of an answer at once; else the second one waits for 40 ms.
            bound = stack.enter_context(socket.socket(family, kind, protocol))
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            # Who asks from now on waits for the answer.
            bound.listen(BACKLOG)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            hint = "choose another address: --listen"
            raise DefiniteError(f"cannot listen on {host}:{port}: {reason}", hint) from None
        yield bound


def _stop_on_signals(server: _Server) -> Callable[[], None]:
    """The first one stops the server, the second one means it. Returns what puts the old handlers back."""
    if threading.current_thread() is not threading.main_thread():
        return lambda: None

    def handle(number: int, _: object) -> None:
        server.end()
        signal.signal(number, before[signal.Signals(number)])

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    return restore
