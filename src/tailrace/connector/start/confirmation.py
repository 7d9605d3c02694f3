"""Telling capture up to where the lake has everything, so that the source may be told.

A cut says it up to its commit. Where nothing that concerns the lake is committed, the source's log grows all the same,
and the source keeps it until it hears from us. So the end of the log is written down now and then, in the lake, while
the newest cut has all that the log has.
"""

from __future__ import annotations

import logging
import time
from contextlib import suppress

from tailrace.connector.start.capture_process import Capture
from tailrace.errors import StoreError
from tailrace.lake.home import LakeHome
from tailrace.lake.records.confirmed import Confirmed
from tailrace.log.index.head import Head
from tailrace.log.reader import LogReader
from tailrace.model.cut import PublishedCut

REST_SECONDS = 10.0
"""Between two notes of where the log ends. Each is a put."""

logger = logging.getLogger(__name__)


class Confirmation:
    """Of one run whose source waits for cuts. One thread."""

    def __init__(self, home: LakeHome, capture: Capture, reader: LogReader) -> None:
        """The run has not made a cut yet."""
        self._file = home.confirmed
        self._capture = capture
        self._log = reader.id
        self._begin = reader.head
        """Where the log ended when the run began."""
        found = home.confirmed.load()
        self._stored = None if found is None else found.ordinal
        """None: what the source was told before may be in the old log alone."""
        self._due = 0.0
        if found is not None and found.log != self._log:
            # Before any cut is made from this log: whoever has another one must know.
            self._file.store(Confirmed(found.ordinal, self._log))
        capture.confirm(self._stored or 0)

    def step(self, head: Head, cut: PublishedCut | None, *, is_last: bool = False) -> None:
        """After a turn. `is_last`: the run ends with this one."""
        if cut is None:
            return
        if self._stored is None and cut.seq >= self._begin.seq:
            # Now the lake has all that the source was told before.
            self._store(max(self._begin.ordinal, cut.position.ordinal))
        self._capture.confirm(cut.position.ordinal)
        is_news = cut.seq == head.seq and head.ordinal > max(self._stored or 0, cut.position.ordinal)
        if is_news and (is_last or time.monotonic() >= self._due):
            self._due = time.monotonic() + REST_SECONDS
            self._store(head.ordinal)

    def _store(self, ordinal: int) -> None:
        # A store that does not answer is asked again with the next note.
        with suppress(OSError, StoreError):
            self._file.store(Confirmed(ordinal, self._log))
            self._stored = ordinal
            self._capture.confirm(ordinal)
