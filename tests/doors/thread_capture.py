"""Capture in a thread of the test's process: what a run sees of a capture, without the time a process takes."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tailrace.connector.start.capture_process import Capture, CaptureOrder, Captures
from tailrace.errors import TailraceError, TransientError
from tailrace.log.write.writer import LogOptions, LogWriter
from tailrace.source.door.control import CaptureControl
from tailrace.source.door.source import Source
from tailrace.source.kinds import load


class ThreadCapture:
    """Implements `Capture`."""

    def __init__(self, keep_seconds: float, *, waits_for_cuts: bool = False) -> None:
        self.control = CaptureControl(self._hear, keep_seconds, proven=self._prove, waits_for_cuts=waits_for_cuts)
        self.report: TailraceError | None = None
        self.is_proven = False

    def check(self) -> None: ...

    def pause(self) -> None:
        self.control.pause()

    def resume(self) -> None:
        self.control.resume()

    def confirm(self, ordinal: int) -> None:
        self.control.confirm(ordinal)

    def _hear(self, message: str) -> None:
        self.report = TransientError(message) if message else None

    def _prove(self) -> None:
        self.is_proven = True


class ThreadCaptures(Captures):
    """Loads nothing beforehand."""

    def prepare(self, source: Source) -> None: ...

    def begin(self, order: CaptureOrder) -> AbstractContextManager[Capture]:
        return _capturing(order)


@contextmanager
def _capturing(order: CaptureOrder) -> Iterator[Capture]:
    source, capture = (
        load(order.source)(**order.arguments),
        ThreadCapture(order.keep_seconds, waits_for_cuts=order.waits_for_cuts),
    )
    log = LogWriter.open(Path(order.log), order.identity, LogOptions(**order.log_options))
    try:
        with ThreadPoolExecutor(1, "capture") as pool:
            running = pool.submit(source.capture, order.claim, log, capture.control)
            try:
                yield capture
            finally:
                capture.control.stopping.set()
            running.result()
    finally:
        log.close()
