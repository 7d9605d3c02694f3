"""What a running capture hears from the connector and tells it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Window:
    """A snapshot window to be appended to the log."""

    id: str
    payload: bytes


class CaptureControl:
    """Shared by the thread that captures and the one that listens. Thread-safe."""

    def __init__(
        self, report: Callable[[str], None], appended: Callable[[str, int], None], keep_seconds: float
    ) -> None:
        self.report = report
        """What capture struggles with, for a person; an empty line when it streams."""
        self.appended = appended
        """A window of this id is durable at this position of the log."""
        self.keep_seconds = keep_seconds
        """How long the log keeps what every consumer has acknowledged."""
        self.stopping = threading.Event()
        self._paused = threading.Event()
        self._windows: list[Window] = []
        self._lock = threading.Lock()

    @property
    def is_paused(self) -> bool:
        """Take nothing more from the source for now, but stay connected and keep its position."""
        return self._paused.is_set()

    def pause(self) -> None:
        self._paused.set()

    def resume(self) -> None:
        self._paused.clear()

    def stop(self) -> None:
        """End soon, with everything taken so far durable."""
        self.stopping.set()

    def add_window(self, window: Window) -> None:
        with self._lock:
            self._windows.append(window)

    def take_windows(self) -> list[Window]:
        """Windows to append now, between two transactions; each once."""
        with self._lock:
            taken, self._windows = self._windows, []
        return taken
