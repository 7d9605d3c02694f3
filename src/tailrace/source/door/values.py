"""Values that travel through more than one part of the door. The rest of Tailrace stores and returns most of them
unread."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tailrace.model.table import TableId, TableSchema

Claim = Mapping[str, Any]
"""What a lake's connector has made or will make at the source, in the source's own words. JSON."""
Definition = Mapping[str, Any]
"""Everything that decides what a copy of a table's rows must look like, in the source's own words. JSON."""
Chunk = Any
"""A disjoint part of a table's rows. Can be pickled."""
View = Mapping[str, Any]
"""Which transactions a state of the database shows, in the source's own words. JSON."""


@dataclass(frozen=True)
class Problem:
    """Why something cannot be done, and what a person can do about it, if possible as a line to paste."""

    message: str
    hint: str


@dataclass(frozen=True)
class Retained:
    """What the source keeps of its own log for a claim."""

    bytes: int | None
    """How much that is at present; None where it does not count in bytes."""
    safe_bytes: int | None = None
    """How much more may be written before the source may give up what it keeps; None where it sets no limit."""


Waiting = Callable[[Problem | None], None]
"""Called again and again while a call is held up by others at the source, with what holds it up as far as it is known.
May raise: the call then ends at once and leaves nothing of what it was about to make."""


def wait_in_silence(_: Problem | None) -> None:
    """For a caller that tells no one and has no reason to stop."""


@dataclass(frozen=True)
class SourceTable:
    """A table as the source describes it now."""

    schema: TableSchema
    rows_estimated: int
    problem: Problem | None = None
    """Why it cannot be copied exactly; None where it can."""
    detail: Any = None
    """What only the source reads."""
    row_bytes_estimated: int | None = None
    """About how much room a row takes; None where that is not known."""

    @property
    def table(self) -> TableId:
        return self.schema.table
