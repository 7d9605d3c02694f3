"""A live table: it has all its rows, follows the log and is in cuts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from tailrace.changes.folding import Folded
from tailrace.changes.logged_table import parts_told
from tailrace.connector.publish.batch import Batch, TablePart
from tailrace.connector.publish.following_table import Follower, Move, RunRewrites
from tailrace.connector.trouble import Trouble
from tailrace.errors import ResyncError
from tailrace.failpoint import failpoint
from tailrace.lake.door import ConflictError
from tailrace.lake.records.clean_shutdown import LeftTable
from tailrace.log.reader import LogReader
from tailrace.model.cut import CutTable, PublishedCut
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableSchema
from tailrace.settings import TaskSizes


@dataclass
class LiveTable(Follower):
    """One thread at a time."""

    floor: SourcePosition
    """Where its snapshot stands: no cut that has the table is older."""
    in_cuts: bool = False
    """The newest cut has it."""
    lacks_rows: bool = False
    """It has no other rows than those that changed since it was taken in."""
    is_untidy: bool = False
    """Its files may want upkeep."""
    left: LeftTable | None = None
    """How the last run had left it, if it was still so."""
    trouble: Trouble | None = None
    """Why the last batch failed, and when to try again."""

    @property
    def version(self) -> int:
        return self.following.standing.version

    @property
    def named(self) -> CutTable:
        """Its newest version as a cut names it."""
        return self.following.standing.named

    @property
    def move(self) -> Move | None:
        return self.following.move

    @property
    def is_stuck(self) -> bool:
        """It is in trouble, and others no longer wait for it."""
        return self.trouble is not None and self.trouble.is_lasting

    def plan(self, batch: Batch, sizes: TaskSizes) -> TablePart:
        """Its part of a batch, and the shape to take after it if one is due."""
        logged = self.following.logged_in(batch, sizes)
        is_growing = logged is not None and self.lacks_rows and bool(logged.changes.shape.target.key)
        if logged is not None:
            self._require_parts(logged.parts)
        return self.following.plan(batch, logged, sizes, partial(self.following.stored.publish, is_growing=is_growing))

    def take(self, part: TablePart, folded: Folded, upto: int, rewrite: RunRewrites) -> None:
        """Make one version of what tasks have written, if they have written any; then take the shape of the move."""
        if part.draft is not None and not folded.is_nothing:
            parts = self.following.parts_of(part.draft, folded, rewrite)
            self.following.commit(part.draft, parts, part.draft.stamp, replaces_all=folded.is_truncated)
            self.is_untidy = True
            failpoint("publish.table")
        self.following.reach(upto, part.move)

    def require_parts(self, reader: LogReader, upto: int) -> None:
        """`ResyncError` if rows up to a transaction came from a part of the table that the last look at it, which was
        taken after that transaction, did not find."""
        self._require_parts(parts_told(reader, self.relation, upto))

    def _require_parts(self, parts: Sequence[TableSchema]) -> None:
        old, codec = self.following.definition, self.following.codec
        now = old if self.move is None else self.move.schema.definition
        if old is None or now is None:
            return
        for part in parts:
            reason = codec.why_part(old, now, part)
            if reason is not None:
                raise ResyncError.of(self.table, reason)

    def left_in(self, cut: PublishedCut) -> LeftTable | None:
        """How a run that ends leaves it; None unless the newest cut has it as it is."""
        if self.move is not None or cut.tables.get(str(self.table)) != self.named:
            return None
        newest = self.following.newest()
        if self.left is not None and self.left.is_of(newest, is_untidy=self.is_untidy):
            return self.left
        return LeftTable.of(self.following.stored, newest, is_untidy=self.is_untidy)

    def maintain(self, rewrite: RunRewrites) -> None:
        """One step of the table's upkeep. Beside another writer it is left for the next time. The next cut names the
        version that it makes."""
        self.is_untidy = False
        with suppress(ConflictError):
            merging = self.following.stored.maintain()
            if merging is not None:
                (part,) = rewrite([merging.rewrite])
                self.following.note_version(merging.commit(part))
                self.is_untidy = True
