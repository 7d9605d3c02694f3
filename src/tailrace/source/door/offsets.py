"""What offsets mean to a source: a part of the door that only those ask who read or edit them.

`OffsetWords` is pure and needs no connection. `SourceOffsets` asks the database what it can still send.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from tailrace.model.position import SourcePosition
from tailrace.offsets.layout import Layout, Wire


@dataclass(frozen=True)
class LogEnd:
    """Where a lake's log ends."""

    ordinal: int
    """Everything that the source sent before this is durable."""
    commit_end_ordinal: int
    """The end of the last transaction's commit; 0 without one."""
    xid: int
    time_us: int
    is_copying: bool
    """No table has been published yet."""


@dataclass(frozen=True)
class OffsetWords:
    """How a kind of source writes an offset."""

    layout: Layout
    emit: Callable[[LogEnd], dict[str, Any]]
    positions: Callable[[Wire], dict[str, int]]
    """The ordinals that a valid offset names, by field, the one that counts first."""
    skip: Callable[[Mapping[str, Any], SourcePosition | None], Mapping[str, Any]]
    """The claim with which `Stream.capture` takes nothing that committed before a position, also if the log ends
    earlier; for None, the claim with which it takes everything after the log's end."""


@dataclass(frozen=True)
class Served:
    """What the source can still send to a lake."""

    oldest: SourcePosition | None
    """Changes from here on can be sent; None where there is nothing left that would send them."""
    newest: SourcePosition
    """Where the source's own log ends now."""
    problem: str | None = None
    """Why it cannot send anything at present."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """For a person."""
    kept: SourcePosition | None = None
    """From here on the source keeps its own log for the lake; None where that is `oldest`, or nothing is kept."""
    kept_bytes: int | None = None
    """How much that is; None where the source does not count in bytes."""
    risk: str | None = None
    """Why it may soon be unable to send what the lake lacks, or is so already; for a person."""
    remedy: str | None = None
    """What helps against the risk."""


@dataclass(frozen=True)
class Counted:
    """The number of transactions; there are more where not all were counted."""

    transactions: int
    is_all: bool = True

    def __str__(self) -> str:
        more = "" if self.is_all else "at least "
        return f"{more}{self.transactions:,} transaction{'' if self.transactions == 1 else 's'}"


@dataclass(frozen=True)
class Adopted:
    """What a connector of another make has at the source, as a claim of ours."""

    claim: Mapping[str, Any]
    leave: Mapping[str, Any] | None
    """What the lake had before and no longer needs; `Stream.drop` removes it."""
    sends_alike: bool
    """Its changes are sent as those of the claim before were."""


class SourceOffsets(Protocol):
    """Of one source. Claims are the source's own words, as in `Stream`."""

    def served(self, claim: Mapping[str, Any]) -> Served:
        """Changes nothing."""
        ...

    def count(self, claim: Mapping[str, Any], after: int, upto: SourcePosition) -> Counted | None:
        """How many transactions would be sent whose commits lie after the ordinal `after` and before `upto`; None where
        the source cannot say. Takes nothing from what is to be sent."""
        ...

    def adopt(self, claim: Mapping[str, Any] | None) -> Adopted:
        """A claim to what the source's arguments name and another connector has made. `claim` is the lake's present
        one, if it has one. A definite error unless it is there and no one reads from it."""
        ...
