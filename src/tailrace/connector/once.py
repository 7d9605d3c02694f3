"""A run with `once`: when it has caught up, and when it gives up on what is in its way.

It has caught up when all that had been committed when the last copy was done is published, and the source has shown
that it has the log's last commit: a server that was set back and wrote as much again ends where the log does.

It does not wait for ever. What is locked, idle in a transaction, full or away for about a minute ends it with an error
that says so. The next run continues.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Hashable

from tailrace.connector.copy.copies import Copies
from tailrace.connector.events import TroubleChanged
from tailrace.connector.publish.applier import Applier
from tailrace.connector.start.capture_process import Capture
from tailrace.errors import FULL, StoreError, TransientError, passing
from tailrace.log.reader import LogReader
from tailrace.source.door.stream import Stream

logger = logging.getLogger(__name__)
OVER_SECONDS = 20.0
"""A trouble that is back sooner than this was never over: a stream that breaks again and again starts well."""


class Patience:
    """How long a run bears with trouble: for some time where it is to end by itself, else for ever."""

    def __init__(self, seconds_max: float | None) -> None:
        self._seconds_max = seconds_max
        self._since: float | None = None
        self._last = 0.0
        self._progress: Hashable = None
        self.told: TroubleChanged | None = None
        """The full disk or silent store that the run before ended with, if it did."""

    def bear(self, trouble: TroubleChanged | None, progress: Hashable = None) -> None:
        """A transient error if the trouble has lasted too long. The time begins again with another `progress`."""
        now = time.monotonic()
        if trouble is None or trouble.message is None:
            if now - self._last > OVER_SECONDS:
                self._since = None
            return
        if self._since is None or progress != self._progress:
            self._since, self._progress = now, progress
        self._last = now
        if self._seconds_max is not None and now - self._since > self._seconds_max:
            raise TransientError(trouble.message, trouble.hint)

    def bear_fault(self, error: OSError | StoreError) -> TroubleChanged:
        """What to tell of a full disk, or of a store that does not answer, after which the run begins again. Raises the
        error if it is another one, and a transient one if it has lasted too long."""
        trouble = error if isinstance(error, StoreError) else passing(error)
        if trouble is None or (isinstance(error, OSError) and error.errno not in FULL):
            raise error
        logger.warning("the run begins again", extra={"reason": trouble.message})
        self.told = TroubleChanged(f"{trouble.message}; trying again", trouble.hint)
        self.bear(self.told)
        return self.told


class CatchingUp:
    """How far a run with `once` is to come. One thread."""

    def __init__(self, stream: Stream, capture: Capture) -> None:
        self._stream = stream
        self._capture = capture
        self._target: int | None = None
        self.final_seq: int | None = None
        """The last transaction to publish, once it is known."""

    def is_done(self, reader: LogReader, copies: Copies, applier: Applier) -> bool:
        if not copies.is_idle:
            self._target = self.final_seq = None
            return False
        if self._target is None:
            self._target = self._stream.now().ordinal
        head = reader.refresh()
        if self.final_seq is None and head.ordinal >= self._target and self._capture.is_proven:
            self.final_seq = head.seq
        return self.final_seq is not None and applier.is_level(self.final_seq, head.ordinal)
