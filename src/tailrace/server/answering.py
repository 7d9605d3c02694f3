"""A server's address: its socket, who may ask, and the answers of one application.

The socket is bound first: an address that is taken is told before anything starts. Told to stop, it answers no more;
answers that are under way get some seconds.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import uvicorn
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from tailrace.errors import DefiniteError
from tailrace.server.api.parts import ServerParts
from tailrace.server.app import create_app
from tailrace.server.connections import Connections, watched
from tailrace.server.security import Gate, Guard, exposed_token
from tailrace.server.supervisor.door import ConnectorHost

GRACE_SECONDS = 5
"""How long answers that are under way may take once we are to stop."""
BACKLOG = 128
PROXIES = "FORWARDED_ALLOW_IPS"
"""Uvicorn's variable: addresses of proxies that are believed when they say who asks."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Reached:
    """How a server is reached, and what a request must bring."""

    host: str = "127.0.0.1"
    port: int = 8083
    token_file: Path | None = None
    tls_cert: Path | None = None
    tls_key: Path | None = None

    def guard(self) -> Guard:
        """A definite error for what others could reach without a token, or for half of TLS."""
        guard = Guard.make(self.host, self.token_file)
        if (self.tls_cert is None) != (self.tls_key is None):
            raise DefiniteError("TLS needs a certificate and its key", "give both: --tls-cert FILE --tls-key FILE")
        return guard


class Answering:
    """The answers of one host of connectors, at a socket that is ours."""

    def __init__(self, bound: socket.socket, reached: Reached, parts: ServerParts) -> None:
        self.parts = parts
        self._bound = bound
        self._server = _Server(_config(reached, parts), parts.closing)
        host, port = bound.getsockname()[:2]
        scheme = "http" if reached.tls_cert is None else "https"
        self.address = f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        """As a URL."""
        warning = exposed_token(reached.token_file) if reached.token_file is not None else None
        self.warnings = [warning] if warning else []
        """What a person should see to."""
        for each in self.warnings:
            logger.warning(each)

    @classmethod
    def of(
        cls, bound: socket.socket, reached: Reached, host: ConnectorHost, refusals: Mapping[str, str] | None = None
    ) -> Answering:
        """Of a host that has not begun yet: nothing that it tells is missed."""
        worker = "{}:{}".format(*bound.getsockname()[:2])
        return cls(bound, reached, ServerParts.of(host, worker, reached.guard(), refusals))

    def end(self) -> None:
        """Any thread: stop as a signal does."""
        self._server.end()

    def run(self) -> None:
        """Until told to stop. The thread that calls is the server's from then on."""
        closing = self.parts.closing
        sampling = threading.Thread(target=self.parts.figures.run, args=[closing], name="figures", daemon=True)
        sampling.start()
        try:
            self._server.run(sockets=[self._bound])
        finally:
            closing.set()
            sampling.join()
            self.parts.queries.close()
            self.parts.supervisor.own.verifications.close()

    @contextmanager
    def stopped_by_signals(self) -> Iterator[None]:
        """Inside, the first signal stops the server, and the second one means it. Only the main thread hears any."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def handle(number: int, _: object) -> None:
            self.end()
            signal.signal(number, before[signal.Signals(number)])

        before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


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


def _config(reached: Reached, parts: ServerParts) -> uvicorn.Config:
    connections = Connections()
    # Inside the gate, which counts by the address that a connection comes from.
    app: Any = ProxyHeadersMiddleware(cast(Any, create_app(parts)), os.environ.get(PROXIES, "127.0.0.1"))
    try:
        config = uvicorn.Config(
            Gate(app, parts.guard, connections=connections, failed=parts.failed_logins),
            http=watched(connections),
            ws="none",
            proxy_headers=False,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="off",
            timeout_graceful_shutdown=GRACE_SECONDS,
            ssl_certfile=reached.tls_cert,
            ssl_keyfile=reached.tls_key,
        )
        config.load()
    except OSError as error:
        raise DefiniteError(
            f"TLS does not work with these files: {error.strerror or error}", "see --tls-cert"
        ) from None
    return config


@contextmanager
def bound_to(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that is ours; who asks from now on waits for the answer. A definite error for an address that is not
    free."""
    with ExitStack() as stack:
        try:
            family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
            # Named TCP, it has asyncio send every part of an answer at once; else the second one waits for 40 ms.
            bound = stack.enter_context(socket.socket(family, kind, protocol))
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            bound.bind(address)
            bound.listen(BACKLOG)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            hint = "choose another address: --listen"
            raise DefiniteError(f"cannot listen on {host}:{port}: {reason}", hint) from None
        yield bound
