"""What an edit of a lake's offset would do: a pure decision.

forward   what committed in between is never logged, so every table is copied again by windows, as after a gap
backward  what the source sends again is in the log already and left out: nothing changes for the lake
beyond    refused: the source cannot send it any more, or has not written it yet
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tailrace.offsets.difference import Difference
from tailrace.offsets.layout import Fault, Wire
from tailrace.source.door.offsets import Counted, Served


class Direction(StrEnum):
    """Where an edit leads."""

    NOWHERE = "nowhere"
    """To where the lake is."""
    FORWARD = "forward"
    """Transactions are skipped."""
    BACKWARD = "backward"
    """Transactions are sent again."""
    RESET = "reset"
    """To no position: everything is copied again."""


@dataclass(frozen=True)
class Assessment:
    """What an edit would do, found without doing it."""

    version: int
    """Of the history that it was compared with; `apply` wants it back, to notice another editor."""
    before: Sequence[Wire]
    after: Sequence[Wire]
    faults: Sequence[Fault] = ()
    """Why it cannot be done; empty where it can."""
    direction: Direction = Direction.NOWHERE
    differences: Sequence[Difference] = ()
    transactions: Counted | None = None
    """How many would be skipped, or sent again; None where the source was not asked or cannot say."""
    tables: Sequence[str] = ()
    """Those that would be copied again."""
    served: Served | None = None
    """What the source can still send; None where it was not asked."""
    positions: dict[str, str] = field(default_factory=dict)
    """For a person: where the log ends, where the lake is, where the edit leads, what the source can send."""
    target: int | None = None
    """The ordinal that it leads to; None for a reset."""
    says: str = ""
    """What follows for the lake, for a person."""

    @property
    def is_possible(self) -> bool:
        return not self.faults

    def to_json(self) -> dict[str, Any]:
        return {
            "version": self.version,
            "possible": self.is_possible,
            "faults": [vars(fault) for fault in self.faults],
            "direction": self.direction,
            "differences": [vars(each) for each in self.differences],
            "transactions": None if self.transactions is None else self.transactions.transactions,
            "transactions_are_all": self.transactions is None or self.transactions.is_all,
            "tables_to_copy": list(self.tables),
            "positions": self.positions,
            "source": dict(self.served.facts) if self.served is not None else None,
            "consequence": self.says,
            "before": list(self.before),
            "after": list(self.after),
        }


def wanted_ordinal(before: dict[str, int], after: dict[str, int]) -> tuple[int | None, Fault | None]:
    """Where an edit leads. The fields of a position that it changes have to agree; where it changes none, it is where
    the lake is (None)."""
    changed = {name: ordinal for name, ordinal in after.items() if before.get(name) != ordinal}
    if not changed:
        return None, None
    if len(set(changed.values())) > 1:
        names = " and ".join(f"offset.{name}" for name in changed)
        field_ = f"offset.{next(iter(changed))}"
        return None, Fault(field_, "one-position", f"{names} are changed to different positions: give them one")
    return next(iter(changed.values())), None


def reach_faults(target: int, log_end: int, served: Served, shown: Callable[[int], str]) -> list[Fault]:
    """Why the source cannot take an edit to there."""
    if served.problem is not None or served.oldest is None:
        return [Fault("offset", "served", f"the source cannot send anything at present: {served.problem}")]
    if target > served.newest.ordinal:
        end = shown(served.newest.ordinal)
        message = f"offset {shown(target)} lies after {end}, where the source's own log ends"
        return [Fault("offset", "written", message)]
    if target < log_end and target < served.oldest.ordinal:
        kept = shown(served.oldest.ordinal)
        message = f"offset {shown(target)} lies before {kept}, from where on the source can still send changes"
        return [Fault("offset", "kept", message)]
    return []


def consequence(direction: Direction, counted: Counted | None, tables: Sequence[str]) -> str:
    """What follows for the lake."""
    copies = f"{len(tables)} table{'' if len(tables) == 1 else 's'}"
    match direction:
        case Direction.NOWHERE:
            return "nothing changes: this is where the lake is"
        case Direction.BACKWARD:
            what = str(counted) if counted is not None else "transactions"
            return f"{what} would be sent again; the log has them and leaves them out: nothing changes for the lake"
        case Direction.FORWARD:
            what = str(counted) if counted is not None else "an unknown number of transactions"
            return f"{what} skipped and never logged: the next start copies {copies} again by windows"
        case Direction.RESET:
            return f"the next start copies {copies} again by windows; nothing is skipped"
