"""What a server sends again, compared with what the log has: whether they are of one history.

A server that was set back, restored from an older copy of its disk, keeps its system identifier and its timeline. From
there on it writes other changes at positions that the log has already. Its slot was set back with it, so it sends again
what we had confirmed:

    the log      ... t7 ... t8 (the last commit, L)   E (the end)
    the server   ... t7 ... S  x1 ...... x2 ...        nothing at L, or another commit

So we ask for everything from L on, not from E. Where the slot was confirmed up to L at most, t8 must come again, as the
first commit, with the same time. Where it was confirmed further, nothing that the log has came after S, and all that
the log lacks is sent. Nothing is confirmed before that is known: a slot that moved on would no longer tell.
"""

from __future__ import annotations

from tailrace.errors import GapError
from tailrace.model.position import SourcePosition
from tailrace.source.postgres.server.lsn import Lsn
from tailrace.source.postgres.server.timeline import REPAIR


class Replay:
    """The last commit of the log, which the server is to send again before any other."""

    def __init__(self, last: SourcePosition | None = None) -> None:
        """None: nothing is to be sent again."""
        self._last = last

    @property
    def is_awaited(self) -> bool:
        return self._last is not None

    def committed(self, ordinal: int, time_us: int) -> None:
        """The server has sent this commit. A `GapError` if another one was to come first."""
        last = self._last
        if last is not None and (ordinal, time_us) == (last.ordinal, last.time_us):
            self._last = None
        self.passed(ordinal)

    def passed(self, ordinal: int) -> None:
        """The server has sent all that committed before this."""
        last = self._last
        if last is not None and ordinal >= last.ordinal:
            raise GapError(
                f"the server does not have the transaction that our log has at {Lsn(last.ordinal)}: it was set back, "
                "and what the log has from some point before that on may never have happened there",
                REPAIR,
            )
