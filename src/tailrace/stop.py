"""Stop: how work in other threads is told that it is to end.

One token is passed down from whoever may end the work to everyone who does it. Part of the work gets a child: it ends
with the whole, or earlier on its own.

    run ─┬─ a full snapshot
         └─ copies by windows

Nothing is lost by a stop: whoever notices it leaves what a crash at that moment would leave, or more.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable


class Stopped(BaseException):
    """The work was told to end. No `Exception`: nothing that handles failures takes it for one."""


class Stop:
    """Set once, never taken back. Any thread, any signal handler."""

    def __init__(self, parent: Stop | None = None) -> None:
        self._event = threading.Event()
        self._wake: Callable[[], None] = lambda: None
        self._children: list[weakref.ref[Stop]] = []
        self._lock = threading.Lock()
        if parent is not None:
            parent._adopt(self)

    def _adopt(self, child: Stop) -> None:
        with self._lock:
            self._children = [each for each in self._children if each() is not None] + [weakref.ref(child)]
        # Entered first, asked second, and `set` does the reverse: one of the two notices.
        if self.is_set():
            child.set()

    def set(self) -> None:
        """Tell the work, and all parts of it, to end. Takes no lock, for the sake of signal handlers."""
        self._event.set()
        self._wake()
        for each in self._children:
            child = each()
            if child is not None:
                child.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait this long, or until the work is to end; True if it is."""
        return self._event.wait(seconds)

    def check(self) -> None:
        """Raises `Stopped` when the work is to end."""
        if self._event.is_set():
            raise Stopped

    def when_set(self, wake: Callable[[], None]) -> None:
        """What to call so that work which waits for something else notices at once. The last one counts."""
        self._wake = wake
        if self.is_set():
            wake()
