"""Whether the published tables of a lake have everything that committed up to a position of the source.

A cut's position is its last transaction's. The position that a person asks for often lies after that: the source was
asked for it after the commit. Then the log tells. It has been sent everything up to its head, so the transactions up to
the position are known, and the cut has them all or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tailrace.lake.home import LakeHome
from tailrace.log.index.head import HeadFile
from tailrace.log.reader import LogReader
from tailrace.model.cut import PublishedCut
from tailrace.model.position import SourcePosition
from tailrace.source.door.codec import Codec


@dataclass(frozen=True)
class HowFar:
    """How far a lake is on its way to a position."""

    cut: PublishedCut | None
    """The newest one."""
    log_ordinal: int | None
    """Everything before this has been logged; None where the log is not on this machine."""
    is_reached: bool

    def words(self, codec: type[Codec]) -> str:
        """How far it is, for a person."""
        shown = (
            "nothing has been published yet"
            if self.cut is None
            else f"the lake shows {codec.format(self.cut.position)}"
        )
        if self.log_ordinal is None:
            return shown
        return f"{shown}, the log ends at {codec.format(SourcePosition(self.log_ordinal))}"


class Approach:
    """Looks at one lake again and again. One thread at a time."""

    def __init__(self, home: LakeHome, ordinal: int | None) -> None:
        """None: any cut will do."""
        self._home = home
        self._ordinal = ordinal
        self._reader: LogReader | None = None

    def signs(self) -> Any:
        """Another value whenever a look could find more than the last one did. Cheap."""
        return self._home.cuts.mark, HeadFile.load(self._home.log)

    def look(self) -> HowFar:
        # The log first: a cut that has what is in it now cannot be an older one.
        upto, log_ordinal = self._logged()
        cut = self._home.cuts.newest()
        if cut is None or self._ordinal is None:
            return HowFar(cut, log_ordinal, cut is not None)
        is_in_log = upto is not None and cut.seq >= upto
        return HowFar(cut, log_ordinal, is_in_log or cut.position.ordinal >= self._ordinal)

    def _logged(self) -> tuple[int | None, int | None]:
        """The last transaction up to the position, where the log has come that far; and how far it has come."""
        if not self._home.has_log:
            return None, None
        if self._reader is None:
            self._reader = LogReader(self._home.log)
        head = self._reader.refresh()
        is_past = self._ordinal is not None and head.ordinal >= self._ordinal
        return self._reader.seq_at(self._ordinal or 0) if is_past else None, head.ordinal
