"""What a commit between two cuts may be read from: only from what a look at the source has vouched for.

A cut is right as it is. Between cuts, a table is the last cut's version with the log laid over, and that is the
source's table only while nothing was done to all its rows without a word, and its columns were called the same:

    cut        vouched              moved        cut of the next copy, or in the next shape
     │────────────│───────?────────────?─────────│
      readable            refused, for this table alone

A table that only changed its columns is readable up to the last change that came in the old shape, and again from the
first one on that came in the new shape.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tailrace.errors import DefiniteError
from tailrace.lake.cuts import Cuts
from tailrace.model.cut import CutTable, PublishedCut
from tailrace.model.rows.exact import is_ours
from tailrace.model.table import Column
from tailrace.model.table_state import Ended, TableRecord


@dataclass(frozen=True)
class Reading:
    """One table to be shown as of a commit after the cut that its rows are taken from."""

    name: str
    record: TableRecord
    base: PublishedCut
    ordinal: int
    """Of the commit."""

    @property
    def named(self) -> CutTable:
        return self.base.tables[self.name]

    def void(self) -> Ended | None:
        """Why the copy that the cut has says nothing of the commit; None if it may."""
        mine = [each for each in self.record.ended if each.copy == self.named.copy and each.version is None]
        if not mine and self.named.copy != self.record.copy:
            return Ended(self.named.copy, self.base.position.ordinal, reason="it was copied again")
        return next((each for each in mine if each.upto < self.ordinal), None)

    def reshaped(self) -> Ended | None:
        """The last move to other columns that the cut does not have and the commit may have."""
        mine = [each for each in self.record.ended if each.copy == self.named.copy and each.version is not None]
        later = [each for each in mine if each.upto < self.ordinal and self.named.version < (each.version or 0)]
        return later[-1] if later else None

    def is_before(self, move: Ended) -> bool:
        """Whether the cut is surely from before the move."""
        return self.base.position.ordinal <= move.upto


def is_same(columns: Sequence[Column], others: Sequence[Column]) -> bool:
    """Whether these are the same columns under the same names."""
    return _shape(columns) == _shape(others)


def _shape(columns: Sequence[Column]) -> set[tuple[object, ...]]:
    return {(each.identity, each.name) for each in columns if not is_ours(each)}


def refusal(reading: Reading, ended: Ended, cuts: Cuts, shown: Callable[[int], str]) -> DefiniteError:
    """With the commits around the one that was asked for."""
    name = reading.name
    later = next((cut for cut in cuts.all() if cut.position.ordinal >= reading.ordinal and name in cut.tables), None)
    first = max(ended.upto, reading.base.position.ordinal)
    reason = ended.reason or "its columns changed in between"
    until, hint = "until it is copied again", f"ask for {shown(first)} or earlier"
    if later is not None:
        until, hint = (
            f"and before {shown(later.position.ordinal)}",
            f"{hint}, or for {shown(later.position.ordinal)} or later",
        )
    message = f"table {name} cannot be shown as of {shown(reading.ordinal)}: nothing vouches for it after"
    return DefiniteError(f"{message} {shown(first)} {until} ({reason})", hint, name)
