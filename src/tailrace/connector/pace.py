"""What a run tells of itself: what is in its way and how far it is, which the source may hear too. And when it pays to
publish.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tailrace.connector.copy.copies import Copies
from tailrace.connector.events import Event, SnapshotProgressed, SourceRetained, StreamProgressed, TroubleChanged
from tailrace.connector.publish.opening import LakeParts
from tailrace.connector.start.capture_process import Capture
from tailrace.connector.start.confirmation import Confirmation
from tailrace.errors import TailraceError
from tailrace.log.reader import LogReader
from tailrace.model.cut import PublishedCut
from tailrace.source.door.stream import Stream
from tailrace.source.door.values import Claim

SHOW_SECONDS = 0.5
RETAINED_SECONDS = 10.0
"""How often the source is asked what it keeps."""
SHORT_SECONDS = 1.0
SHORT_REST_FACTOR = 0.5
REST_FACTOR = 3.0
"""For how many times as long as a publish took it rests: for the first second of it, and for all beyond that."""
REST_SECONDS_MAX = 30.0


class Troubles:
    """What is in a run's way, told whenever that has changed. One thread."""

    def __init__(self, capture: Capture, tell: Callable[[Event], None], told: TroubleChanged | None = None) -> None:
        """`told` is what was told last, before this run began again."""
        self._capture = capture
        self._tell = tell
        self._told = told
        self.looking: TailraceError | None = None
        """What a look at the tables struggles with."""

    @property
    def has_report(self) -> bool:
        """Whether capture struggles with something."""
        return self._capture.report is not None

    def tell(self, copies: Copies | None, publishing: TailraceError | None = None) -> TroubleChanged | None:
        """What capture, copying or publishing struggles with or waits for: the first of them counts."""
        waits_for, copying = (copies.waits_for, copies.trouble) if copies else (None, None)
        known = (self._capture.report, waits_for, self.looking, publishing, copying)
        now = next((TroubleChanged(each.message, each.hint) for each in known if each is not None), None)
        if now != self._told:
            self._told = now
            self._tell(now or TroubleChanged(None))
        return now


class Pace:
    """How far a run is: measured and told. One thread."""

    def __init__(
        self,
        parts: LakeParts,
        stream: Stream,
        claim: Claim,
        capture: Capture,
        tell: Callable[[Event], None],
        confirmation: Confirmation | None = None,
    ) -> None:
        """`confirmation` is there where the source waits for cuts."""
        self._engine = parts.engine
        self._codec = parts.codec
        self._stream = stream
        self._claim = claim
        self._capture = capture
        self._tell = tell
        self._confirmation = confirmation
        self._shown_at = 0.0
        self._asked_at = 0.0
        self._position = 0
        self._heard = time.monotonic()
        """When capture last had nothing to complain of."""

    def show(self, reader: LogReader, cut: PublishedCut | None, copies: Copies, *, is_last: bool = False) -> None:
        self.confirm(reader, cut, is_last=is_last)
        elapsed = time.monotonic() - self._shown_at
        if elapsed < SHOW_SECONDS and not is_last:
            return
        progress = copies.progress()
        if progress is not None:
            self._tell(SnapshotProgressed(progress))
        head = reader.refresh()
        rate = (head.position - self._position) / elapsed if self._shown_at else 0.0
        self._shown_at, self._position = time.monotonic(), head.position
        self._ask_retained()
        if cut is None:
            return
        lag_seconds = 0.0
        if head.seq > cut.seq and cut.seq + 1 >= reader.oldest_seq:
            oldest_us = reader.position_of(cut.seq + 1).time_us
            lag_seconds = max(0.0, time.time() - oldest_us / 1_000_000)
        if self._capture.report is None:
            self._heard = time.monotonic()
        else:
            # What was committed since capture lost the source is not in the log, and may be as old as that.
            lag_seconds = max(lag_seconds, time.monotonic() - self._heard)
        lag_bytes = self._stream.lag_bytes(head.ordinal)
        text = self._codec.format(cut.position)
        self._tell(StreamProgressed(cut, text, head.seq, rate, lag_bytes, lag_seconds, self._engine.done))

    def confirm(self, reader: LogReader, cut: PublishedCut | None, *, is_last: bool) -> None:
        """Let the source forget what the lake has, if it waits for that."""
        if self._confirmation is not None:
            self._confirmation.step(reader.head, cut, is_last=is_last)

    def _ask_retained(self) -> None:
        now = time.monotonic()
        if self._asked_at and now - self._asked_at < RETAINED_SECONDS:
            return
        self._asked_at = now
        retained = self._stream.retained(self._claim)
        if retained is not None:
            self._tell(SourceRetained(retained.bytes, retained.safe_bytes))


def due_after(begun: float, ended: float, every_seconds: float, *, is_behind: bool) -> float:
    """When the next publish is due. What a batch costs grows less than its size, so long ones are followed by long
    rests: most of the time is for capture and for readers. Short ones mostly wait for the disk and for Spark, and
    readers gain by a short tail of the log. None waits while the log is ahead by more than a batch."""
    took = ended - begun
    rest = min(took, SHORT_SECONDS) * SHORT_REST_FACTOR + max(0.0, took - SHORT_SECONDS) * REST_FACTOR
    return ended if is_behind else max(begun + every_seconds, ended + min(rest, REST_SECONDS_MAX))
