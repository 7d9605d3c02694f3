"""How long a lake keeps its past: which cuts stay, and with them the versions that they name.

    now ◀── every cut ──▶│◀── one every sixth of that ──▶│◀── one every ──▶│ none
                   all_seconds                     24 times that      keep_seconds

By default: every cut of the last hour, one every ten minutes of the last day, one an hour of the last week. A lake that
publishes every second would otherwise keep 600,000 versions of a table. Commits between two kept cuts stay readable as
long as the log has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tailrace.model.cut import PublishedCut

_SLOTS_PER_WINDOW = 6
_WINDOWS = 24
_NAMED_MAX = 200_000
"""How many versions all cuts of the first window name together; more where it has few cuts."""
_CUTS_MIN, _CUTS_MAX = 100, 4_000


@dataclass(frozen=True)
class Retention:
    """What a user wants to be kept."""

    keep_seconds: float = 7 * 24 * 3600.0
    """No cut is older, but for the newest one of each table."""
    all_seconds: float = 3600.0
    """Younger than this, every cut is kept, and every version of a table. A read may take so long."""

    @property
    def slot_seconds(self) -> float:
        """How often it pays to look for what can go."""
        return self.all_seconds / _SLOTS_PER_WINDOW

    def kept(self, cuts: Sequence[PublishedCut], now_us: int) -> list[PublishedCut]:
        """Those of the cuts, oldest first, that stay. What stayed once stays until it is too old for its next slot, so
        it does not matter how often this is asked.

        The newest cut that has a table always stays: it has the last good state of one that left.
        """
        last_of_table = {name: number for number, cut in enumerate(cuts) for name in cut.tables}
        last_of_slot = {self._slot(cut, now_us): number for number, cut in enumerate(cuts)}
        recent = len(cuts) - _recent_max(cuts)
        stays = {*last_of_table.values(), len(cuts) - 1}
        for number, cut in enumerate(cuts):
            age = self._age(cut, now_us)
            is_recent = age < self.all_seconds and number >= recent
            if is_recent or (age < self.keep_seconds and last_of_slot[self._slot(cut, now_us)] == number):
                stays.add(number)
        return [cut for number, cut in enumerate(cuts) if number in stays]

    def _age(self, cut: PublishedCut, now_us: int) -> float:
        return (now_us - cut.published_us) / 1_000_000

    def _slot(self, cut: PublishedCut, now_us: int) -> tuple[float, int]:
        is_fine = self._age(cut, now_us) < _WINDOWS * self.all_seconds
        seconds = self.slot_seconds if is_fine else self.all_seconds
        return seconds, int(cut.published_us / 1_000_000 // max(seconds, 1e-6))


def _recent_max(cuts: Sequence[PublishedCut]) -> int:
    """How many cuts may be kept for being young."""
    tables = len(cuts[-1].tables) if cuts else 0
    return min(max(_NAMED_MAX // max(tables, 1), _CUTS_MIN), _CUTS_MAX)
