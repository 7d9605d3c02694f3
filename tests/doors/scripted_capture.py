"""Capture of a scripted source: the file's new lines into the log.

What survives a crash: whole flushes. A transaction of which only a part was flushed is forgotten at the next start
and written again from the script.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from tests.doors.feed import Feed, Record, batch_of
from tests.doors.history import read_lines

from tailrace.errors import DefiniteError, TransientError
from tailrace.failpoint import failpoint
from tailrace.log.write.writer import LogBlockedError, LogWriter
from tailrace.source.door.control import CaptureControl

POLL_SECONDS = 0.02
RETRY_SECONDS = 0.1
RETAIN_SECONDS = 1.0
FLUSH_RECORDS = 100
"""So many records are flushed together: a larger transaction takes several flushes."""


class ScriptedCapture:
    """One run of capture. One thread."""

    def __init__(self, path: Path, claim: str, log: LogWriter, control: CaptureControl, skip_to: int = 0) -> None:
        self._path = path
        self._claim = claim
        self._log = log
        self._control = control
        self._skip_to = skip_to
        self._retain_at = 0.0

    def run(self) -> None:
        """Until told to stop, through every outage."""
        while not self._control.stopping.is_set():
            try:
                self._stream()
            except TransientError as error:
                self._control.report(f"{error.message}; trying again in {RETRY_SECONDS} s")
                self._control.stopping.wait(RETRY_SECONDS)

    def _stream(self) -> None:
        control = self._control
        self._log.abandon_active()
        feed, offset = Feed(self._claim, max(self._log.last_commit.ordinal, self._skip_to - 1)), 0
        is_reported = False
        while not control.stopping.is_set():
            if not control.is_paused:
                lines, offset = read_lines(self._path, offset)
                self._write([record for line in lines for record in feed.records(line)])
                self._require_claim(feed)
                if feed.end_ordinal > self._log.head.ordinal:
                    self._write([feed.keepalive()])
                if not is_reported:
                    control.report("")
                    control.prove()
                    is_reported = True
            self._retain()
            control.stopping.wait(POLL_SECONDS)

    def _require_claim(self, feed: Feed) -> None:
        if self._claim not in feed.history.claims:
            raise DefiniteError(
                f"{self._path} keeps no changes for {self._claim} any more", "start a new lake in an empty folder"
            )

    def _write(self, records: Sequence[Record]) -> None:
        """Make the records durable, piece by piece; leaves the rest when told to stop."""
        for start in range(0, len(records), FLUSH_RECORDS):
            if self._control.stopping.is_set():
                return
            self._log.append(batch_of(records[start : start + FLUSH_RECORDS]))
            self._flush()

    def _flush(self) -> None:
        """Flush, waiting for room if there is none."""
        has_waited = False
        while True:
            try:
                self._log.flush()
                break
            except LogBlockedError as error:
                self._control.report(f"{error.message}; waiting for room")
                has_waited = True
                if self._control.stopping.wait(RETRY_SECONDS):
                    return
                self._log.retain()
        failpoint("capture.flushed")
        if has_waited:
            self._control.report("")

    def _retain(self) -> None:
        if time.monotonic() >= self._retain_at:
            self._log.retain(self._control.keep_seconds)
            self._retain_at = time.monotonic() + RETAIN_SECONDS
