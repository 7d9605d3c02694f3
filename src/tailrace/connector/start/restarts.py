"""What makes a run begin again instead of end: the source has changed under it, and a start knows what to do.

GapError     the source has lost changes. With `when_needed` the next beginning has every table copied again.
MovedError   it is somewhere else, and nothing is lost. The next beginning looks where.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping

from tailrace.errors import DefiniteError, GapError
from tailrace.lake.home import LakeHome
from tailrace.model.position import SourcePosition
from tailrace.settings import SnapshotMode

TIMES_MAX = 5
TIMES_SECONDS = 60

logger = logging.getLogger(__name__)


class Restarts:
    """How often a run has begun again, and why."""

    def __init__(self, mode: SnapshotMode) -> None:
        self._mode = mode
        self._gap: GapError | None = None
        self._copied_at: SourcePosition | None = None
        self._times: deque[float] = deque(maxlen=TIMES_MAX)

    def allow(self, error: DefiniteError) -> None:
        """Returns if the run is to begin again; raises the error if that has been tried, or is not allowed."""
        if isinstance(error, GapError) and (self._mode is not SnapshotMode.WHEN_NEEDED or self._gap is error):
            raise error
        if len(self._times) == TIMES_MAX and time.monotonic() - self._times[0] < TIMES_SECONDS:
            raise error
        self._times.append(time.monotonic())
        self._gap = error if isinstance(error, GapError) else None
        logger.warning("the run begins again", extra={"reason": error.message})

    def compare(self, home: LakeHome, identity: Mapping[str, str]) -> None:
        """A definite error if the lake is of another source, unless every table may be copied again because of that."""
        try:
            home.require_identity(identity)
        except GapError as error:
            if self._mode is not SnapshotMode.WHEN_NEEDED or self._copied_at is not None:
                raise
            self._gap = error

    def raise_gap(self) -> None:
        """What the beginning before ended with, if changes were lost."""
        if self._gap is not None:
            raise self._gap

    def may_copy(self, end: SourcePosition) -> bool:
        """Whether every table may be copied again after a gap, for a log that ends here: once, because a second time
        would end as the first one did."""
        if self._mode is not SnapshotMode.WHEN_NEEDED or self._copied_at == end:
            return False
        self._gap, self._copied_at = None, end
        return True
