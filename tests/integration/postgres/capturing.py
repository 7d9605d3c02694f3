"""Capture in a thread of the test, as the connector runs it in a process of its own."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from tailrace.errors import TailraceError
from tailrace.log.files.disk import LogDisk
from tailrace.log.reader import LogReader
from tailrace.log.write.writer import DEFAULTS, LogOptions, LogWriter
from tailrace.source.door.control import CaptureControl
from tailrace.source.door.values import Claim
from tailrace.source.postgres.source import PostgresSource


class Capture:
    """Runs inside `with`. Remembers what was reported and what it died of."""

    def __init__(
        self,
        source: PostgresSource,
        claim: Claim,
        log: Path,
        options: LogOptions = DEFAULTS,
        disk: LogDisk | None = None,
    ) -> None:
        self.log = log
        self.identity = source.identify()
        self.reports: list[str] = []
        self.error: TailraceError | None = None
        self.control = CaptureControl(self.reports.append, keep_seconds=0.0)
        self._source = source
        self._claim = claim
        self._options = options
        self._disk = disk

    def __enter__(self) -> Capture:
        self._writer = LogWriter.open(self.log, self.identity, self._options, self._disk)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.control.stopping.set()
        self._thread.join()
        self._writer.close()

    def _run(self) -> None:
        try:
            self._source.capture(self._claim, self._writer, self.control)
        except TailraceError as error:
            self.error = error

    @property
    def problem(self) -> str:
        """What it struggles with at present."""
        assert self.error is None, self.error
        return self.reports[-1] if self.reports else ""

    @property
    def is_streaming(self) -> bool:
        return bool(self.reports) and not self.problem

    @property
    def has_ended(self) -> bool:
        return not self._thread.is_alive()

    @property
    def head(self) -> Any:
        return LogReader(self.log).head
