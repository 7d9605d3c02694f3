"""A lake table that follows the log. A live table has one, and so has a table that still grows.

    plan     which changes of a batch concern the table, in which shape, over which version
    commit   what tasks have written becomes one version
    reach    the table is at the batch's last transaction, and takes another shape where one is due

Before it adds a version, it proves that the newest one is its own: a folder that was put back from a backup is refused.
What survives a crash is the newest version with its stamp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tailrace.changes.folding import Folded, Writers
from tailrace.changes.logged_table import LoggedTable, logged_table
from tailrace.changes.shape import require_same
from tailrace.connector.publish.batch import ATTEMPTS, Batch, TableFold, TablePart
from tailrace.errors import ResyncError
from tailrace.lake.door import ConflictError, Draft, LakeTable, Rewrite, TableVersion
from tailrace.lake.stamp import Stamp
from tailrace.log.reader import LogReader
from tailrace.model.cut import CutTable
from tailrace.model.following import typed_like
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId, TableSchema
from tailrace.settings import TaskSizes
from tailrace.source.door.codec import Codec
from tailrace.source.door.values import Definition

OpenDraft = Callable[[TableSchema, Stamp], Draft]
RunRewrites = Callable[[list[Rewrite]], list[Any]]
"""Runs them in tasks."""


@dataclass(frozen=True)
class Move:
    """Another shape of a table. It is harmless to take once the table has everything before `position`."""

    schema: TableSchema
    position: SourcePosition


@dataclass(frozen=True)
class Standing:
    """The versions of a lake table."""

    version: int
    """The number of its newest version."""
    stamp: Stamp
    """What that version carries."""
    durable: int | None = None
    """A version that survives a power cut, with all before it; None if none is known to."""

    @property
    def named(self) -> CutTable:
        """The newest version as a cut names it."""
        return named(self.version, self.stamp)


@dataclass
class Follower:
    """A table as its runs know it, around one that follows the log."""

    following: FollowingTable

    @property
    def table(self) -> TableId:
        return self.following.table

    @property
    def relation(self) -> int:
        return self.following.relation

    @property
    def copy(self) -> int:
        return self.following.copy

    @property
    def seq(self) -> int:
        return self.following.seq

    def make_durable(self) -> None:
        self.following.make_durable()


class FollowingTable:
    """One thread at a time."""

    def __init__(
        self,
        table: TableId,
        stored: LakeTable,
        codec: type[Codec],
        standing: Standing,
        seq: int,
        definition: Definition | None = None,
    ) -> None:
        self.table = table
        self.stored = stored
        self.codec = codec
        self.standing = standing
        self.seq = seq
        """The last transaction that the table contains. It may be later than the stamp's: transactions that do not
        concern the table make no version."""
        self.definition = definition
        """The one that the copy was begun under, or that the table has moved to."""
        self.move: Move | None = None
        """The shape to take next."""

    @property
    def relation(self) -> int:
        return self.standing.stamp.relation

    @property
    def copy(self) -> int:
        return self.standing.stamp.copy

    @property
    def is_durable(self) -> bool:
        return self.standing.durable == self.standing.version

    def make_durable(self) -> None:
        """Let what was published survive a power cut. A cut may then name it."""
        if not self.is_durable:
            self.stored.make_durable(self.standing.durable)
            self.standing = replace(self.standing, durable=self.standing.version)

    def logged_in(self, batch: Batch, sizes: TaskSizes) -> LoggedTable | None:
        """What a batch has of this table; None if it has nothing. `ResyncError` if the table's copy cannot take it."""
        if self.relation not in batch.weights or self.seq >= batch.upto:
            return None
        self._take_late_version()
        between = self.seq, batch.upto
        if self.seq >= batch.upto:
            return None
        logged = logged_table(batch.reader, self.table, self.relation, between, self.codec.decode, sizes.read_bytes)
        if logged is None:
            return None
        shape = logged.changes.shape
        shape = replace(shape, target=self._typed(shape.target))
        require_same(shape, self.definition, self.codec.why_copy)
        return replace(logged, changes=replace(logged.changes, shape=shape))

    def plan(self, batch: Batch, logged: LoggedTable | None, sizes: TaskSizes, open_draft: OpenDraft) -> TablePart:
        """Work for tasks on these changes, and the shape to take after them if one is due."""
        move = self.move.schema if self.move is not None and self.is_to_move(batch.reader, batch.upto) else None
        if logged is None:
            return TablePart(move=move)
        self._require_made_before(logged.made)
        draft = open_draft(logged.changes.shape.target, Stamp(batch.position, self.relation, self.copy, batch.upto))
        writers = Writers(draft.write, draft.write_alone)
        weight = batch.weights[self.relation]
        return TablePart(draft, TableFold(str(self.table), logged.changes, writers, weight, sizes), move)

    def parts_of(self, draft: Draft, folded: Folded, rewrite: RunRewrites) -> list[Any]:
        """What the next version consists of."""
        self.require_standing()
        parts = list(folded.parts)
        return parts if folded.is_truncated else parts + rewrite(draft.rest(parts))

    def commit(self, draft: Draft, parts: Sequence[Any], stamp: Stamp, *, replaces_all: bool = False) -> None:
        """Make one version of the parts."""
        version = draft.commit(parts, stamp, replaces_all=replaces_all)
        self.standing = replace(self.standing, version=version, stamp=stamp)

    def restamp(self, stamp: Stamp) -> None:
        """Make a version in which nothing changes but the stamp."""

        def write() -> None:
            self.require_standing()
            self.standing = replace(self.standing, version=self.stored.restamp(stamp), stamp=stamp)

        _again_after_conflicts(write)

    def reach(self, upto: int, move: TableSchema | None = None) -> None:
        """The table has everything up to a transaction. Only then does it take the shape that follows."""
        self.seq = max(self.seq, upto)
        if move is not None:
            _again_after_conflicts(lambda: self._evolve(move))
            self.definition, self.move = move.definition, None

    def _evolve(self, move: TableSchema) -> None:
        self.require_standing()
        self.note_version(self.stored.evolve(self._typed(move)))

    def note_version(self, version: int) -> None:
        """The table has a newer version with the same stamp."""
        self.standing = replace(self.standing, version=version)

    def is_to_move(self, reader: LogReader, upto: int) -> bool:
        """Whether transaction `upto` is past everything before the move."""
        if self.move is None or self.move.position.ordinal > reader.head.ordinal:
            return False
        return reader.seq_at(self.move.position.ordinal) <= upto

    def require_standing(self) -> None:
        """`ResyncError` if the table is not where we left it; a `ConflictError` if it is further, by a commit of our
        own that a store did after we had given up waiting for its answer."""
        if self._late_version() is not None:
            raise ConflictError(
                f"{self.table}: a commit that was not answered was done after all", table=str(self.table)
            )

    def _take_late_version(self) -> None:
        """The table may be further than we left it, by a commit of our own that was not answered. A table that grows is
        opened again then: how far it has grown came with that commit."""
        late = self._late_version()
        if late is None:
            return
        assert late.stamp is not None
        if late.stamp.growth is not None or self.standing.stamp.growth is not None:
            self.require_standing()
        self.standing = replace(self.standing, version=late.number, stamp=late.stamp)
        self.seq = max(self.seq, late.stamp.seq or 0)

    def _late_version(self) -> TableVersion | None:
        """The newest version, if it is not the one that we left but a later one of this copy: no one else makes such.
        `ResyncError` if it is any other."""
        newest, left = self.stored.version(), self.standing.stamp
        stamp = newest.stamp if newest is not None else None
        if stamp is not None and stamp.to_json() == left.to_json():
            return None
        if stamp is None or stamp.copy != left.copy or (stamp.seq or 0) < (left.seq or 0):
            raise ResyncError.of(self.table, "its lake table is not the one that was published")
        return newest

    def newest(self) -> TableVersion:
        return TableVersion(self.standing.version, self.standing.stamp)

    def _require_made_before(self, made: Sequence[TableSchema]) -> None:
        """`ResyncError` if a transaction that is to be published filled a part of the table that it may have made. What
        it did to the part as a whole afterwards left no trace, because no other transaction can have seen the part."""
        for part in made:
            reason = f"partition {part.table} was made and filled in one transaction, which may have emptied it again"
            raise ResyncError.of(self.table, reason)

    def _typed(self, schema: TableSchema) -> TableSchema:
        """With the lake types that the table has had since it was copied."""
        return typed_like(schema, self.stored.columns(self.standing.version))


def named(version: int, stamp: Stamp) -> CutTable:
    """A version as a cut names it."""
    return CutTable(version, stamp.copy, stamp.seq or 0)


def _again_after_conflicts(write: Callable[[], None]) -> None:
    """After a conflict nothing of ours is in the table: another writer optimised it meanwhile."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            write()
            return
        except ConflictError:
            if attempt == ATTEMPTS:
                raise
