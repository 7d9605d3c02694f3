"""What is asked of a running connector from other threads."""

from __future__ import annotations

import threading

from tailrace.lake.home import LakeHome
from tailrace.model.table import TableId


class StopRequest(BaseException):
    """The connector was asked to stop."""


class RunControl:
    """Any thread, any signal handler."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._paused = threading.Event()
        self._resyncs: list[TableId] = []
        self.home: LakeHome | None = None
        """The lake, once it is ours alone."""

    def stop(self) -> None:
        self._stopping.set()

    def pause(self) -> None:
        self._paused.set()

    def resume(self) -> None:
        self._paused.clear()

    def resync(self, table: TableId) -> None:
        self._resyncs.append(table)

    @property
    def is_stopping(self) -> bool:
        return self._stopping.is_set()

    @property
    def is_paused(self) -> bool:
        return self._paused.is_set()

    def take_resyncs(self) -> list[TableId]:
        taken = list(self._resyncs)
        del self._resyncs[: len(taken)]
        return taken

    def check(self) -> None:
        """Raises when we are to stop."""
        if self._stopping.is_set():
            raise StopRequest

    def wait(self, seconds: float) -> None:
        self._stopping.wait(seconds)
