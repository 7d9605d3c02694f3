"""Requests that wait for sources, which may not answer: only a few at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tailrace.server.errors import BusyError

ASKING_MAX = 8
"""How many requests may wait for sources at once. Each holds a thread, and others need threads too."""


class SourceRequests:
    """Of one host of connectors. Any thread."""

    def __init__(self) -> None:
        self._free = threading.BoundedSemaphore(ASKING_MAX)

    @contextmanager
    def one(self) -> Iterator[None]:
        """A request waits inside. Too many at once are told to come back."""
        if not self._free.acquire(blocking=False):
            raise BusyError(f"{ASKING_MAX} requests wait for sources already", "ask again when one has ended")
        try:
            yield
        finally:
            self._free.release()
