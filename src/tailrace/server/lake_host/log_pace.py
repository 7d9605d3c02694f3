"""How far a lake's log and its newest cut are, measured from outside."""

from __future__ import annotations

import time

from tailrace.connector.events import StreamProgressed
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.cut import PublishedCut
from tailrace.source.kinds import codec_of


class LogPace:
    """One log. One thread."""

    def __init__(self, home: LakeHome) -> None:
        self._home = home
        self._reader: LogReader | None = None
        self._measured: tuple[float, int] | None = None
        """When it was measured last, and the log's position then."""

    def forget(self) -> None:
        """The log may be another one."""
        self._reader = self._measured = None

    def measure(self, cut: PublishedCut) -> StreamProgressed | None:
        """None as long as there is no log. How many bytes the source is ahead, files do not say."""
        source = self._home.source()
        if source is None or not self._home.has_log:
            return None
        reader = self._reader = self._reader or LogReader(self._home.log)
        head, now = reader.refresh(), time.monotonic()
        rate = 0.0
        if self._measured is not None and now > self._measured[0]:
            rate = (head.position - self._measured[1]) / (now - self._measured[0])
        self._measured = now, head.position
        lag_seconds = 0.0
        if head.seq > cut.seq and cut.seq + 1 >= reader.oldest_seq:
            lag_seconds = max(0.0, time.time() - reader.position_of(cut.seq + 1).time_us / 1_000_000)
        text = codec_of(source.kind).format(cut.position)
        return StreamProgressed(cut, text, max(head.seq, cut.seq), max(0.0, rate), None, lag_seconds)
