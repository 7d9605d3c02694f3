"""A lake table that follows the log: what is planned for its part of a batch, and the version that comes of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from tailrace.changes.decoding import Changes
from tailrace.changes.folding import Folded, Writers
from tailrace.changes.shape import require_same
from tailrace.changes.tail import parts_made, parts_told, shape_between
from tailrace.connector.publish.batch import ATTEMPTS, Batch, Fold, TablePart
from tailrace.connector.trouble import Trouble
from tailrace.errors import ResyncError
from tailrace.failpoint import failpoint
from tailrace.lake.door import ConflictError, Draft, LakeTable, Rewrite, TableVersion
from tailrace.lake.records.clean_shutdown import LeftTable
from tailrace.lake.stamp import Stamp
from tailrace.log.reader import LogReader
from tailrace.model.change import Decode, WhyCopy, WhyPart
from tailrace.model.cut import CutTable, PublishedCut
from tailrace.model.following import typed_like
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId, TableSchema
from tailrace.settings import TaskSizes
from tailrace.source.door.values import Definition

RunRewrites = Callable[[list[Rewrite]], list[Any]]
"""Runs them in tasks."""


@dataclass(frozen=True)
class Move:
    """Another shape of a table, harmless to follow to once everything before `position` is in."""

    schema: TableSchema
    position: SourcePosition


@dataclass
class LiveTable:
    """A lake table that follows the log. One thread at a time."""

    table: TableId
    relation: int
    stored: LakeTable
    decode: Decode
    why_copy: WhyCopy
    why_part: WhyPart
    seq: int
    """The last transaction the table contains."""
    standing: CutTable
    """Its newest version, as a cut names it."""
    durable: int | None
    """A version that survives a power cut, with all before it; None if none is known to."""
    floor: SourcePosition
    """Where its snapshot stands: no cut that has the table is older."""
    in_cuts: bool = False
    """The newest cut has it."""
    trouble: Trouble | None = None
    """Why the last batch failed, and when to try again."""
    definition: Definition | None = None
    """The one that the copy was begun under, or has followed to."""
    move: Move | None = None
    """Where to follow next."""
    lacks_rows: bool = False
    """It has no other rows than those that changed since it was taken in."""
    is_untidy: bool = False
    """Its files may want upkeep."""
    stamp: Stamp | None = None
    """Of its newest version, where it is known."""
    found: LeftTable | None = None
    """How the last run had left it, if it was still so."""

    @property
    def copy(self) -> int:
        return self.standing.copy

    @property
    def is_stuck(self) -> bool:
        """It is in trouble, and others no longer wait for it."""
        return self.trouble is not None and self.trouble.is_lasting

    @property
    def is_durable(self) -> bool:
        return self.durable == self.standing.version

    def make_durable(self) -> None:
        """Let what was published survive a power cut. A cut may then name it."""
        if not self.is_durable:
            self.stored.make_durable(self.durable)
            self.durable = self.standing.version

    def plan(self, batch: Batch, sizes: TaskSizes) -> TablePart:
        """Its part of a batch, and the shape to take after it if it is time."""
        reader, upto, weight = batch.reader, batch.upto, batch.weights.get(self.relation)
        move = self.move.schema if self.move is not None and self.is_to_move(reader, upto) else None
        shape = None
        if weight is not None and self.seq < upto:
            shape = shape_between(reader, self.table, (self.seq, upto), self.decode, self.relation)
        if shape is None or weight is None:
            return TablePart(move=move)
        shape = replace(shape, target=self._typed(shape.target))
        require_same(shape, self.definition, self.why_copy)
        self.require_parts(reader, upto)
        self._require_made_before(reader, upto)
        draft = self._draft(shape.target, Stamp(batch.position, self.relation, self.copy, upto))
        changes = Changes.of(reader, shape, (self.seq, upto), sizes.read_bytes)
        fold = Fold(str(self.table), changes, Writers(draft.write, draft.write_alone), weight, sizes)
        return TablePart(draft, fold, move)

    def take(self, part: TablePart, folded: Folded, upto: int, rewrite: RunRewrites) -> None:
        """Make one version of what tasks have written, if they have written any; then take the shape of the move."""
        if part.draft is not None and not folded.is_nothing:
            self._require_standing()
            parts = list(folded.parts)
            if not folded.is_truncated:
                parts += rewrite(part.draft.rest(parts))
            self._commit(part.draft, parts, replaces_all=folded.is_truncated)
            self.is_untidy = True
            failpoint("publish.table")
        self.seq = max(self.seq, upto)
        if part.move is not None:
            schema = part.move
            self._tried(lambda: self._evolve(schema))
            self.definition, self.move = schema.definition, None

    def is_to_move(self, reader: LogReader, upto: int) -> bool:
        """Whether everything before the move is in at transaction `upto`."""
        if self.move is None or self.move.position.ordinal > reader.head.ordinal:
            return False
        return reader.seq_at(self.move.position.ordinal) <= upto

    def require_parts(self, reader: LogReader, upto: int) -> None:
        """`ResyncError` if rows up to a transaction came from a part of the table that the last look at it, which was
        taken after that transaction, did not find."""
        now = self.definition if self.move is None else self.move.schema.definition
        if self.definition is None or now is None:
            return
        for part in parts_told(reader, self.relation, upto):
            reason = self.why_part(self.definition, now, part)
            if reason is not None:
                raise ResyncError.of(self.table, reason)

    def _require_made_before(self, reader: LogReader, upto: int) -> None:
        """`ResyncError` if a transaction that is to be published filled a part of the table that it may have made. What
        it did to the part as a whole afterwards left no trace, as no other one can have seen the part before."""
        for part in parts_made(reader, self.relation, (self.seq, upto)):
            reason = f"partition {part.table} was made and filled in one transaction, which may have emptied it again"
            raise ResyncError.of(self.table, reason)

    def _evolve(self, schema: TableSchema) -> None:
        self.standing = replace(self.standing, version=self.stored.evolve(self._typed(schema)))

    def _typed(self, schema: TableSchema) -> TableSchema:
        """With the lake types that the table has had since it was copied."""
        self._require_standing()
        return typed_like(schema, self.stored.columns(self.standing.version))

    def _tried(self, write: Callable[[], None]) -> None:
        """Again after a conflict: another writer optimised the table meanwhile, and nothing of ours is in it."""
        for attempt in range(1, ATTEMPTS + 1):
            try:
                write()
                return
            except ConflictError:
                if attempt == ATTEMPTS:
                    raise

    def _require_standing(self) -> None:
        """The table is where we left it. A folder put back from a backup is not."""
        found = self.stored.version()
        if found is None or found.stamp is None or not found.stamp.is_of(self.standing):
            raise ResyncError.of(self.table, "its lake table is not the one that was published")

    def _draft(self, schema: TableSchema, stamp: Stamp) -> Draft:
        return self.stored.publish(schema, stamp, is_growing=self.lacks_rows and bool(schema.key))

    def _commit(self, draft: Draft, parts: list[Any], *, replaces_all: bool) -> None:
        version = draft.commit(parts, replaces_all=replaces_all)
        self.standing, self.stamp = named(version, draft.stamp), draft.stamp

    def left(self, cut: PublishedCut) -> LeftTable | None:
        """How a run that ends leaves it; None unless the newest cut has it as it is."""
        if self.move is not None or cut.tables.get(str(self.table)) != self.standing:
            return None
        now = TableVersion(self.standing.version, self.stamp)
        if self.found is not None and self.found.is_of(now, is_untidy=self.is_untidy):
            return self.found
        return LeftTable.of(self.stored, now, is_untidy=self.is_untidy)

    def maintain(self, rewrite: RunRewrites) -> None:
        """One step of the table's upkeep. Beside another writer it is left for the next time. The next cut names the
        version that it makes."""
        self.is_untidy = False
        with suppress(ConflictError):
            merging = self.stored.maintain()
            if merging is not None:
                (part,) = rewrite([merging.rewrite])
                self.standing = replace(self.standing, version=merging.commit(part))
                self.is_untidy = True


def named(version: int, stamp: Stamp) -> CutTable:
    """A version as a cut names it."""
    return CutTable(version, stamp.copy, stamp.seq or 0)
