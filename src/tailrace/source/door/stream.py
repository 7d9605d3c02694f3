"""The source's changes: what keeps and sends them, from where, and into the log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tailrace.log.write.writer import LogWriter
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId
from tailrace.source.door.control import CaptureControl
from tailrace.source.door.offsets import SourceOffsets
from tailrace.source.door.values import Claim, Problem, Retained, Waiting, wait_in_silence


@dataclass(frozen=True)
class Prepared:
    """What `Stream.prepare` did."""

    done: Sequence[str]
    """For a person, a line each; empty when everything was there."""
    refused: Mapping[TableId, Problem]
    """Tables whose changes the source will not send, and why."""


@dataclass(frozen=True)
class Leftovers:
    """What connectors have made at a source whose lakes may be gone."""

    claims: Sequence[Claim]
    """For `Stream.drop`."""
    in_use: Sequence[str]
    """What is in use and left alone, a line each."""


class Stream(Protocol):
    """The changes of one database, for one lake: its claim says what sends them. The claim is stored before anything
    is made at the source, so that what a crash leaves there can be dropped.
    """

    def reserved(self) -> frozenset[str]:
        """What no other connector may use, as far as the arguments alone tell: the same words for every way to write
        it. Two sources that share none may still meet at the source, which refuses it then. A definite error for
        arguments that make no sense."""
        return frozenset()

    def claim(self, stored: Claim | None) -> Claim:
        """Names for what `prepare` will make, chosen once; the caller stores them before anything is made, so that
        nothing is ever left at the source that no lake knows of. Given a stored claim, checks that it still fits the
        arguments and the server, and returns it. Positions of this source are those of the claim from then on."""
        ...

    def unsent(self, claim: Claim, tables: Sequence[TableId]) -> set[TableId]:
        """Those of the tables whose changes do not reach us at present: what happened to them meanwhile is lost."""
        ...

    def prepare(
        self,
        claim: Claim,
        tables: Sequence[TableId],
        resume: SourcePosition | None,
        waiting: Waiting = wait_in_silence,
        *,
        keeps_others: bool = False,
    ) -> Prepared:
        """Make the source keep and send these tables' changes from now on, or from `resume`, where the log ends. Those
        of others need not be sent any more, unless it `keeps_others`: then what is sent stays as it is.

        Can be called again at any time; changes only what is not so yet. A definite error when changes after
        `resume` are gone."""
        ...

    def require_continuity(self, claim: Claim, end: SourcePosition | None) -> Claim:
        """A `GapError` when changes after `end`, where the log ends, are gone, or the source never had what the log
        has. Only while no capture runs. None: nothing is in the log yet. The claim to continue with, which the caller
        stores before it is used."""
        ...

    def restart(self, claim: Claim, end: SourcePosition) -> Claim:
        """After a `GapError`: the claim with which `prepare` and `capture` take up what follows now, in a log that ends
        at `end`. The caller has every table copied again, and stores the claim before it is used."""
        ...

    def capture(self, claim: Claim, log: LogWriter, control: CaptureControl) -> None:
        """Append changes to the log until told to stop. Runs in a process of its own.

        Continues after every transaction that the log has, and drops what it has already, by the position of its
        commit. Tells the source only of what is durable. Transient errors are reported and tried again. Says so
        (`CaptureControl.prove`) when it is sure that the source has the log's last commit."""
        ...

    def drop(self, claim: Claim) -> list[str]:
        """Remove what `prepare` made, and only that; says what was done, a line each."""
        ...

    def leftovers(self, name: str | None = None) -> Leftovers:
        """What connectors of ours have made and not dropped, as far as names tell. With a name, what is called so; a
        definite error if nothing is."""
        ...

    def offsets(self) -> SourceOffsets:
        """What only those ask who read or edit offsets."""
        ...

    def now(self) -> SourcePosition:
        """A position at or after every transaction that has committed, and that capture will report as reached when it
        has them, also if nothing is ever committed again."""
        ...

    def lag_bytes(self, ordinal: int) -> int | None:
        """About how much of the source's own log lies after this; None where it does not count in bytes."""
        ...

    def retained(self, claim: Claim) -> Retained | None:
        """What the source keeps for this claim; None where it keeps nothing, cannot say or does not answer."""
        return None
