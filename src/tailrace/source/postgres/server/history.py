"""Histories: positions that only ever grow, though a server's may begin again.

An ordinal is an LSN until a lake continues on a server that has written less than the log has of another: one that was
set back, or another one. From there on the ordinals of the log have the number of a history in front of the LSN:

    0/2000060   the server that the lake began with
    1:0/1800028 the same lake on the server that took its place: after all of the first

What the log has from before a gap may never have happened on the server that follows it. Then it is *void*: every table
is copied again, and nothing of it is laid over what is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tailrace.errors import DefiniteError
from tailrace.model.position import SourcePosition
from tailrace.source.door.values import Claim, View
from tailrace.source.postgres.server.lsn import HISTORIES_MAX, HISTORY_BITS, Lsn

GAP_DETAIL = b"gap"
"""The detail of a commit that stands for changes that were lost."""


@dataclass(frozen=True)
class History:
    """The one that a claim is of."""

    number: int = 0
    gap_from: int | None = None
    """The ordinal at which the log ended when it began again."""
    is_void: bool = False
    """What lies before may never have happened here."""

    @classmethod
    def of(cls, claim: Claim) -> History:
        return cls(claim.get("history", 0), claim.get("gap_from"), claim.get("is_void", False))

    def ordinal(self, lsn: int) -> int:
        return self.number << HISTORY_BITS | lsn

    def position(self, lsn: int) -> SourcePosition:
        return SourcePosition(self.ordinal(lsn))

    def lsn(self, ordinal: int | None) -> Lsn:
        """The server's own; 0 for what is of a history before, or not known."""
        return Lsn(max(0, (ordinal or 0) - self.ordinal(0)))

    def next_if(self, is_other: bool) -> int:
        """The number to continue with."""
        if is_other and self.number == HISTORIES_MAX:
            raise DefiniteError(f"the lake has continued on {HISTORIES_MAX} servers", "start a new lake")
        return self.number + is_other

    def dated(self, view: View) -> View:
        """A view with what it needs to judge transactions of the log."""
        found: dict[str, Any] = dict(view)
        if "replayed" in found:
            found["replayed"] = self.ordinal(found["replayed"])
        if self.gap_from is not None:
            found |= {"gap_from": self.gap_from, "is_void": self.is_void}
        return found


FIRST = History()


def restarted(claim: Claim, system_identifier: str, end: int, now: Lsn, *, is_slot: bool) -> Mapping[str, Any]:
    """What a claim says when a log that ends here continues after a gap. With `is_slot`, only its slot was lost."""
    history = History.of(claim)
    is_other = claim.get("system") not in (None, system_identifier)
    return {
        "gap_from": end,
        "skip_to": 0,
        "system": system_identifier,
        "history": history.next_if(now <= history.lsn(end)),
        "is_void": is_other or not is_slot,
    }
