"""The connections of a server: none is waited for without end, and no peer takes all of them.

A connection *waits* from its beginning, and from the end of each answer, until the header of the next request is there.
One that waits too long is closed. Where there are too many, the one that has waited longest makes room for a new one:
of the same peer, or of the peer that has most of them. So whoever asks is heard, however many ask nothing.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

CONNECTIONS_MAX = 500
PEER_WAITING_MAX = 100
WAIT_SECONDS = 20.0
"""From the beginning of a connection, or the end of an answer, to the end of a request's header."""

Client = tuple[str, int]
"""A peer's address, and its port for one connection."""


@dataclass
class _Connection:
    transport: asyncio.Transport
    requests: int = 0
    """Under way; several where a client sends the next one before it has the answer."""
    timer: asyncio.TimerHandle | None = None


class Connections:
    """One event loop."""

    def __init__(
        self,
        connections_max: int = CONNECTIONS_MAX,
        peer_waiting_max: int = PEER_WAITING_MAX,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        self._connections_max = connections_max
        self._peer_waiting_max = peer_waiting_max
        self._wait_seconds = wait_seconds
        self._open: dict[Client, _Connection] = {}
        self._waiting: dict[str, dict[Client, None]] = {}
        """By peer, longest first."""
        self._requests: Counter[str] = Counter()

    def requests_of(self, peer: str) -> int:
        """How many requests of a peer are under way."""
        return self._requests[peer]

    def opened(self, client: Client, transport: asyncio.Transport) -> None:
        """A new connection. It is refused only where all others are being answered."""
        if len(self._waiting.get(client[0], ())) >= self._peer_waiting_max:
            self._close_oldest(client[0])
        elif len(self._open) >= self._connections_max:
            if not self._waiting:
                transport.abort()
                return
            self._close_oldest(max(self._waiting, key=lambda peer: len(self._waiting[peer])))
        self._open[client] = _Connection(transport)
        self._wait(client)

    def closed(self, client: Client) -> None:
        self._stop_waiting(client)
        self._open.pop(client, None)

    def begun(self, client: Client) -> None:
        """The header of a request is there."""
        self._requests[client[0]] += 1
        self._stop_waiting(client)
        if client in self._open:
            self._open[client].requests += 1

    def ended(self, client: Client) -> None:
        """The request has been answered, or given up."""
        self._requests[client[0]] -= 1
        if not self._requests[client[0]]:
            del self._requests[client[0]]
        connection = self._open.get(client)
        if connection is not None and connection.requests:
            connection.requests -= 1
            if not connection.requests:
                self._wait(client)

    def _wait(self, client: Client) -> None:
        self._waiting.setdefault(client[0], {})[client] = None
        loop = asyncio.get_running_loop()
        self._open[client].timer = loop.call_later(self._wait_seconds, self._close, client)

    def _stop_waiting(self, client: Client) -> None:
        connection = self._open.get(client)
        if connection is None or connection.timer is None:
            return
        connection.timer.cancel()
        connection.timer = None
        waiting = self._waiting[client[0]]
        del waiting[client]
        if not waiting:
            del self._waiting[client[0]]

    def _close_oldest(self, peer: str) -> None:
        self._close(next(iter(self._waiting[peer])))

    def _close(self, client: Client) -> None:
        transport = self._open[client].transport
        self.closed(client)
        # Nothing is being sent. An orderly end would wait for a peer that may never read it.
        transport.abort()


def watched(connections: Connections) -> type[asyncio.Protocol]:
    """Uvicorn's protocol, whose connections are told of."""

    class Watched(AutoHTTPProtocol):  # type: ignore[misc, valid-type]
        client: Client | None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if self.client is None:
                # Gone already.
                transport.abort()
            else:
                connections.opened(self.client, transport)

        def connection_lost(self, exc: Exception | None) -> None:
            if self.client is not None:
                connections.closed(self.client)
            super().connection_lost(exc)

    return Watched
