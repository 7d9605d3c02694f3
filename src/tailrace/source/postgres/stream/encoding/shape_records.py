"""The shapes that a stream announces, as records of the log.

A shape that an open transaction announces may come from a change of its own that no other session can see yet. Then its
SCHEMA record only says where the shape begins, and the catalog is asked again when the transaction has committed. For
the server, what it sent with a prepared transaction is known to all others, whether that one commits or not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from tailrace.model.kind import Kind
from tailrace.model.table import TableSchema
from tailrace.source.postgres.stream.encoding.announced_shapes import Described
from tailrace.source.postgres.stream.encoding.records import RecordList
from tailrace.source.postgres.values.messages import Relation, malformed


class Block(NamedTuple):
    """The part of the stream that is at hand: a whole transaction, or what the server sends of one at a time."""

    tag: str = ""
    """How it began."""
    xid: int = 0
    """Its transaction; 0 outside of blocks."""
    lsn: int = 0
    """Where the transaction commits or is prepared, if that is known."""
    is_skipped: bool = False
    """The log has it already."""

    @property
    def is_streamed(self) -> bool:
        """Its transaction is still open."""
        return self.tag == "S"

    def enter(self, block: Block) -> Block:
        """The next block, which may begin only outside of blocks."""
        if self.xid or not block.xid:
            raise malformed(block.tag)
        return block


OUTSIDE = Block()


class ShapeRecords:
    """Makes SCHEMA and SHAPE records of the tables that a stream announces.

    Remembers the open streamed transactions: of each the shapes that it announced, never its changes.
    """

    def __init__(self, describe: Callable[[Relation], Described]) -> None:
        self._describe = describe
        self.open: dict[int, list[tuple[int, Relation]]] = {}
        """The open streamed transactions, and which shapes each announced that are not settled."""
        self._announced = 0
        """How many shapes were announced. The message has no LSN, so its number tells the record."""
        self.unlogged: dict[int, Relation] = {}
        """Shapes that only transactions announced which the log has: the server sends a shape once."""
        self._newest: Relation | None = None
        """The table that was announced last, where nothing but that has come since."""
        self._held: tuple[Relation, int] | None = None
        """A table that was announced directly after another one, and in which sub-transaction. The next change tells
        whether it is a partition of that one: those of a partition come under the number of its table."""

    @property
    def is_waiting(self) -> bool:
        """The next message tells what the table that was announced last is."""
        return self._newest is not None

    def announce(self, relation: Relation, sub_xid: int, block: Block, records: RecordList) -> None:
        root = self._newest
        self.release(block, records)
        self._newest = relation
        if root is None:
            self._add(relation, sub_xid, block, records)
        else:
            self._held = replace(relation, part_of=root.oid, filled_by=block.xid), sub_xid

    def release(self, block: Block, records: RecordList, changed: int = 0) -> None:
        """Log what was held back, now that the next message is there: a change of the table with this number, if it is
        one."""
        held, self._newest, self._held = self._held, None, None
        if held is not None:
            relation, sub_xid = held
            is_part = relation.part_of == changed
            self._add(relation if is_part else replace(relation, part_of=0), sub_xid, block, records)

    def begin(self, lsn: int, block: Block, records: RecordList) -> None:
        """Log the beginning of a transaction that the log has not, after the shapes that only transactions announced
        which the log has."""
        if block.is_skipped:
            return
        if self.unlogged:
            for relation in self.unlogged.values():
                described = self._describe(replace(relation, filled_by=0))
                records.add(0, 0, Kind.SCHEMA, described.schema.to_json(), relation.oid)
            self.unlogged = {}
        records.add(lsn, block.xid, Kind.BEGIN)

    def complete(self, xid: int, records: RecordList, *, is_committed: bool) -> None:
        """The shapes of a streamed transaction, now that the catalog can show them; it is no longer open."""
        for number, relation in self.open.pop(xid):
            described = self._describe(replace(relation, committed_by=xid) if is_committed else relation)
            records.add(number, xid, Kind.SHAPE, described.schema.to_json(), relation.oid)

    def _add(self, relation: Relation, sub_xid: int, block: Block, records: RecordList) -> None:
        self._announced += 1
        if block.is_skipped:
            self.unlogged[relation.oid] = relation
            return
        described = self._describe(replace(relation, committed_by=block.xid) if block.tag == "B" else relation)
        schema, xid = described.schema, block.xid
        if block.is_streamed and not described.is_settled:
            self.open[xid].append((self._announced, relation))
            # Without columns nothing can be decoded by it, should it stay as it is.
            schema = TableSchema(schema.table, relation.oid, (), (), {"announced": self._announced})
        elif block.tag == "b" and described.is_settled:
            xid, sub_xid = 0, 0
        records.add(self._announced, xid, Kind.SCHEMA, schema.to_json(), relation.oid, sub_xid)
