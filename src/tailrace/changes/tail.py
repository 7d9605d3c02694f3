"""Tail: one table's changes in a range of transactions, compacted.

Publishing and live reads both start here, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.changes.decoding import changes_here
from tailrace.changes.ordering import in_order
from tailrace.changes.shape import TableShape, shape_of
from tailrace.changes.states import events_of, states_of
from tailrace.log.reader import LogReader
from tailrace.model.change import OP, POS, SEQ, Decode
from tailrace.model.table import TableId


class Tail:
    """The compacted changes of one table."""

    def __init__(self, shape: TableShape, changes: pa.Table) -> None:
        self.shape = shape
        self.schema = shape.target
        changes = in_order(changes, (SEQ, POS))
        truncates = pc.indices_nonzero(pc.equal(changes.column(OP), "t"))
        self.truncated = len(truncates) > 0
        """The base's rows are gone; the states are all there is."""
        if self.truncated:
            changes = changes.slice(truncates[-1].as_py() + 1)
        self.states = states_of(events_of(changes, self.schema), self.schema)

    def folded(self, write: Callable[[list[pa.RecordBatch]], Any]) -> list[Any]:
        """What becomes of the states, in one part."""
        return [write(self.states.to_batches())]


def touched_shape(
    reader: LogReader, table: TableId, between: tuple[int, int], decode: Decode, relation: int | None = None
) -> TableShape | None:
    """The table's shape if transactions after < seq <= upto (`between`) touched it.

    Without `relation`, the newest of that name counts.
    """
    after, upto = between
    if after >= upto or (relation is not None and relation not in reader.relations(after, upto)):
        return None
    positions = _end_position(reader, after), _end_position(reader, upto)
    shape = shape_of(reader.schemas(relation), table, positions, decode, relation)
    return shape if shape is not None and shape.relations & reader.relations(after, upto) else None


def _end_position(reader: LogReader, seq: int) -> int:
    """Where transaction `seq` ends in the log; 0 for one the log no longer has."""
    if seq < reader.oldest_seq:
        return 0
    return int(reader.transactions(seq - 1, seq).column("commit_position")[0].as_py()) + 1


def read_tail(
    reader: LogReader, table: TableId, between: tuple[int, int], decode: Decode, relation: int | None = None
) -> Tail | None:
    """The table's compacted changes of transactions after < seq <= upto; None if there are none."""
    shape = touched_shape(reader, table, between, decode, relation)
    if shape is None:
        return None
    changes = changes_here(reader, *between, shape)
    return Tail(shape, changes) if changes is not None and changes.num_rows else None
