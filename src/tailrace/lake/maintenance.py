"""Upkeep of a whole lake: old cuts leave, then what only they needed.

    cuts.jsonl replaced, durably ──▶ files and commits of each table ──▶ what crashes had left

In this order, because a cut must never name what is gone. Dying in between leaves files that the next time deletes.
Only the process that holds the lake's lock does this.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tailrace.failpoint import failpoint
from tailrace.lake.door import LakeTable, Pruned, Wanted
from tailrace.lake.home import LakeHome
from tailrace.lake.retention import Retention
from tailrace.model.cut import PublishedCut
from tailrace.model.table import TableId

STRANGERS_SECONDS_MIN = 24 * 3600.0
"""A file that no version has yet may belong to a copy that takes long."""


@dataclass
class Maintenance:
    """What one lake keeps of its past."""

    home: LakeHome
    retention: Retention
    dry_run: bool = False
    clock: Callable[[], float] = time.time
    strangers_seconds: float | None = None
    _named: dict[str, set[int]] = field(default_factory=dict)
    _cuts_end: int = 0

    def forget_cuts(self) -> int:
        """Let cuts go that are not to be kept; returns how many. What is left decides what `prune` keeps."""
        cuts = self.home.cuts.all()
        kept = self.retention.kept(cuts, int(self.clock() * 1_000_000))
        if len(kept) < len(cuts) and not self.dry_run:
            self.home.cuts.replace(kept)
            failpoint("cuts.replaced")
        self._named = {}
        self._cuts_end = self.home.cuts.end
        self._note(kept)
        return len(cuts) - len(kept)

    def _note(self, cuts: Iterable[PublishedCut]) -> None:
        for cut in cuts:
            for name, table in cut.tables.items():
                self._named.setdefault(name, set()).add(table.version)

    def prune(self, table: TableId, stored: LakeTable) -> Pruned:
        """Delete what no cut needs that the last `forget_cuts` kept or that came later, nor a younger version."""
        now = self.clock()
        self._note(self.home.cuts.after(self._cuts_end))
        self._cuts_end = self.home.cuts.end
        strangers = self.strangers_seconds
        if strangers is None:
            strangers = max(self.retention.keep_seconds, STRANGERS_SECONDS_MIN)
        versions = frozenset(self._named.get(str(table), ()))
        wanted = Wanted(versions, now - self.retention.all_seconds, now - strangers, self.dry_run)
        return stored.prune(wanted)

    def forget_damaged(self) -> int:
        """Delete what crashes left of tables' newest versions, when it is too old to interest anyone; returns how many
        folders."""
        return self.home.forget_damaged(self.clock() - self.retention.keep_seconds, dry_run=self.dry_run)
