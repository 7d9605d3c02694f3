"""One table's part of a batch: read its changes, compact them, publish them in one version."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from tailrace.changes.decoding import changes_here
from tailrace.changes.shape import TableShape, require_same
from tailrace.changes.tail import Tail, parts_made, parts_told, touched_shape
from tailrace.connector._trouble import Trouble
from tailrace.errors import ResyncError
from tailrace.failpoint import failpoint
from tailrace.lake.door import ConflictError, LakeTable, TableVersion
from tailrace.lake.left import LeftTable
from tailrace.lake.stamp import Stamp
from tailrace.log.reader import LogReader
from tailrace.model.change import Decode, WhyCopy, WhyPart
from tailrace.model.cut import CutTable, PublishedCut
from tailrace.model.following import typed_like
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId, TableSchema
from tailrace.source.door import Definition
from tailrace.spark.compaction import ExecutorTail
from tailrace.spark.session import LazySession

ATTEMPTS = 5
DRIVER_BYTES_MAX = 160 << 20
"""Up to this much of the log is published right here, without Spark: a million changes are 130 MiB, and take this
process 0.9 GB. A backlog comes in batches that are no larger; a transaction may be."""
DRIVER_DECODED_BYTES_MAX = 3 * DRIVER_BYTES_MAX
"""Of a log that is compressed, less may be more than this process should hold."""


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
    spark: LazySession
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

    def apply(self, reader: LogReader, upto: int, position: SourcePosition) -> None:
        """Publish (seq, upto] as one version, none if nothing concerns the table or it is there already; then take the
        shape of the move, if it is time."""
        if upto > self.seq:
            self._advance(reader, upto, position)
            self.seq = upto
        if self.move is not None and self.is_to_move(reader, upto):
            schema = self.move.schema
            self._tried(lambda: self._evolve(schema))
            self.definition, self.move = schema.definition, None

    def is_to_move(self, reader: LogReader, upto: int) -> bool:
        """Whether everything before the move is in at transaction `upto`."""
        if self.move is None or self.move.position.ordinal > reader.head.ordinal:
            return False
        return reader.seq_at(self.move.position.ordinal) <= upto

    def _advance(self, reader: LogReader, upto: int, position: SourcePosition) -> None:
        between = (self.seq, upto)
        shape = touched_shape(reader, self.table, between, self.decode, self.relation)
        if shape is not None:
            shape = replace(shape, target=self._typed(shape.target))
            require_same(shape, self.definition, self.why_copy)
            self.require_parts(reader, upto)
            self._require_made_before(reader, upto)
            stamp = Stamp(position, self.relation, self.copy, upto)
            self._tried(lambda: self._publish(reader, upto, shape, stamp))
            failpoint("publish.table")

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

    def _publish(self, reader: LogReader, upto: int, shape: TableShape, stamp: Stamp) -> None:
        self._require_standing()
        tail = self._tail(reader, upto, shape)
        if isinstance(tail, Tail) and not tail.truncated and not tail.states.num_rows:
            return
        self._fold(tail, shape.target, stamp)
        self.is_untidy = True

    def _fold(self, tail: Tail | ExecutorTail, schema: TableSchema, stamp: Stamp) -> None:
        is_growing = self.lacks_rows and bool(schema.key)
        draft = self.stored.publish(schema, stamp, replaces_all=tail.truncated, is_growing=is_growing)
        self.standing, self.stamp = named(draft.commit(tail.folded(draft.write)), stamp), stamp

    def _tail(self, reader: LogReader, upto: int, shape: TableShape) -> Tail | ExecutorTail:
        if reader.bytes_between(self.seq, upto) <= DRIVER_BYTES_MAX:
            changes = changes_here(reader, self.seq, upto, shape, DRIVER_DECODED_BYTES_MAX)
            if changes is not None:
                return Tail(shape, changes)
        return ExecutorTail(self.spark.get(), reader, shape, self.seq, upto)

    def left(self, cut: PublishedCut) -> LeftTable | None:
        """How a run that ends leaves it; None unless the newest cut has it as it is."""
        if self.move is not None or cut.tables.get(str(self.table)) != self.standing:
            return None
        now = TableVersion(self.standing.version, self.stamp)
        if self.found is not None and self.found.is_of(now, is_untidy=self.is_untidy):
            return self.found
        return LeftTable.of(self.stored, now, is_untidy=self.is_untidy)

    def maintain(self) -> None:
        """One step of the table's upkeep. Beside another writer it is left for the next time. The next cut names the
        version that it makes."""
        self.is_untidy = False
        with suppress(ConflictError):
            version = self.stored.maintain()
            if version is not None:
                self.standing = replace(self.standing, version=version)
                self.is_untidy = True


def named(version: int, stamp: Stamp) -> CutTable:
    """A version as a cut names it."""
    return CutTable(version, stamp.copy, stamp.seq or 0)
