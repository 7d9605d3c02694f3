"""What a running capture hears from the connector and tells it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from tailrace.stop import Stop


class CaptureControl:
    """Shared by the thread that captures and the one that listens. Thread-safe."""

    def __init__(
        self,
        report: Callable[[str], None],
        keep_seconds: float,
        held: Callable[[], None] = lambda: None,
        proven: Callable[[], None] = lambda: None,
        *,
        waits_for_cuts: bool = False,
    ) -> None:
        self.report = report
        """What capture struggles with, for a person; an empty line when it streams."""
        self.keep_seconds = keep_seconds
        """How long the log keeps what every consumer has acknowledged."""
        self._held = held
        """Called when capture has seen that it is paused."""
        self._proven = proven
        """Called when the source has shown that it has what the log has."""
        self._is_proven = False
        self.stopping = Stop()
        """Set: end soon, with everything taken so far durable."""
        self.confirmable: int | None = 0 if waits_for_cuts else None
        """The source may be told of nothing beyond this ordinal; None where it may be told of all that is durable in
        the log."""
        self._paused = threading.Event()
        self._has_told = False

    @property
    def is_paused(self) -> bool:
        """Take nothing more from the source for now, but stay connected and keep its position. For the thread that
        captures: what it has seen once is told."""
        is_paused = self._paused.is_set()
        if is_paused and not self._has_told:
            self._held()
        self._has_told = is_paused
        return is_paused

    def prove(self) -> None:
        """The source has the last commit that the log has: what follows continues it. Told once."""
        if not self._is_proven:
            self._is_proven = True
            self._proven()

    def confirm(self, ordinal: int) -> None:
        """The lake has everything that committed up to here."""
        if self.confirmable is not None:
            self.confirmable = max(self.confirmable, ordinal)

    def pause(self) -> None:
        self._paused.set()

    def resume(self) -> None:
        self._paused.clear()
