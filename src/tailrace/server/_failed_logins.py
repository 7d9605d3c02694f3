"""Logins that failed: told in the server's messages, and answered ever later."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from tailrace.model.backoff import Backoff

BACKOFF = Backoff(0.25, 4.0)
FORGET_SECONDS = 300.0
PEERS_MAX = 1000

logger = logging.getLogger(__name__)


class FailedLogins:
    """By peer. One event loop."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._known: dict[str, tuple[int, float]] = {}
        """How many in a row, and when the last one was; oldest first."""

    def pause_seconds(self, peer: str) -> float:
        """How long to wait before this one is answered. Of many, the first, second, fourth … is told."""
        count, last = self._known.pop(peer, (0, 0.0))
        count = count + 1 if self._now() - last < FORGET_SECONDS else 1
        self._known[peer] = count, self._now()
        if len(self._known) > PEERS_MAX:
            del self._known[next(iter(self._known))]
        if count & (count - 1) == 0:
            logger.warning("failed login", extra={"peer": peer, "failures": count})
        return BACKOFF.seconds(count)
