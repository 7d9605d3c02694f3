"""The newest cut of a lake that another process publishes, and what that process says of it."""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.connector.events import CutPublished
from tailrace.lake.home import LakeHome
from tailrace.model.cut import PublishedCut
from tailrace.server.lake_host.messages import Said
from tailrace.source.kinds import codec_of


class CutWatch:
    """Of one lake. One thread."""

    def __init__(self, home: LakeHome) -> None:
        self._home = home
        self._mark = (-1, -1)
        self._seconds: dict[int, float] = {}
        """What publishing took, by the last transaction of the cut."""
        self._is_unheard = False
        """There is a cut that its run has not said anything of yet."""
        self.cut: PublishedCut | None = None

    def look(self, said: Sequence[Said], *, is_due: bool) -> CutPublished | None:
        """A new cut. A lake in a bucket is asked only when its run has said so, or when it `is_due`."""
        for each in said:
            if each.kind == "CutPublished":
                self._seconds = {int(each.fields["seq"]): float(each.fields["seconds"])}
        if not (self._home.is_inside or is_due or self._seconds or self._is_unheard):
            return None
        mark = self._home.cuts.mark
        if mark == self._mark and not self._is_unheard:
            return None
        self._mark = mark
        return self._new()

    def _new(self) -> CutPublished | None:
        newest, was, source = self._home.cuts.newest(), self.cut, self._home.source()
        if newest is None or was is None or source is None or newest.published_us == was.published_us:
            self.cut, self._is_unheard = newest, False
            return None
        seconds = self._seconds.pop(newest.seq, None)
        if seconds is None and not self._is_unheard:
            # The line is in the journal a moment before the message: with the next look there is both.
            self._is_unheard = True
            return None
        self.cut, self._is_unheard = newest, False
        text = codec_of(source.kind).format(newest.position)
        return CutPublished(newest, text, seconds or 0.0, max(0, newest.seq - was.seq))
