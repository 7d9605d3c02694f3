"""One table's part of a batch: read its changes, compact them, publish them in one commit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from tailrace.connector.spread import MovedRowsError, SpreadTail
from tailrace.failpoint import failpoint
from tailrace.lake.compact import compact
from tailrace.lake.delta import DeltaTable
from tailrace.lake.events import events
from tailrace.lake.moved import fill_moved
from tailrace.lake.stamp import Stamp
from tailrace.log.reader import LogReader
from tailrace.model.lsn import Lsn
from tailrace.model.table import TableId
from tailrace.spark.changes import changes_on_driver
from tailrace.spark.explain import explained
from tailrace.spark.shape import TableShape, shape_of

ATTEMPTS = 5
DRIVER_BYTES_MAX = 16 << 20
"""Up to this much of the log is decoded right here: handing it out would take longer."""


class Tail:
    """What a table's changes in a range of transactions come to."""

    def __init__(self, shape: TableShape, changes: pa.Table) -> None:
        self.schema = shape.target
        changes = changes.sort_by([("_seq", "ascending"), ("_pos", "ascending")])
        truncates = pc.indices_nonzero(pc.equal(changes.column("_op"), "t"))
        self.truncated = len(truncates) > 0
        """The base's rows are gone; the states are all there is."""
        if self.truncated:
            changes = changes.slice(truncates[-1].as_py() + 1)
        self.states = compact(events(changes, shape.target.key, shape.target.names), shape.target.names)


def touched_shape(
    reader: LogReader, table: TableId, after: int, upto: int, relation: int | None = None
) -> TableShape | None:
    """The table's shape if transactions after < seq <= upto touched it. Without `relation`, the newest
    of that name counts."""
    if after >= upto:
        return None
    between = _end_position(reader, after), _end_position(reader, upto)
    shape = shape_of(reader.schemas(), table, between, relation)
    return shape if shape is not None and shape.relations & reader.relations(after, upto) else None


def _end_position(reader: LogReader, seq: int) -> int:
    """Where transaction `seq` ends in the log; 0 for one the log no longer has."""
    if seq < reader.oldest_seq:
        return 0
    return int(reader.transactions(seq - 1, seq).column("commit_position")[0].as_py()) + 1


def read_tail(reader: LogReader, table: TableId, after: int, upto: int) -> Tail | None:
    """The table's compacted changes of transactions after < seq <= upto; None if there are none."""
    shape = touched_shape(reader, table, after, upto)
    if shape is None:
        return None
    changes = changes_on_driver(reader, after, upto, shape)
    return Tail(shape, changes) if changes.num_rows else None


class TableApplier:
    """Brings one lake table from the transaction it has to a newer one."""

    def __init__(self, spark: SparkSession, path: Path, table: TableId, relation: int) -> None:
        self.table = table
        self._relation = relation
        self.delta = DeltaTable(spark, path)
        self.seq = 0
        """The last transaction the table contains."""

    def apply(self, reader: LogReader, upto: int, lsn: Lsn) -> None:
        """Publish (seq, upto] in one commit; no commit if nothing concerns the table or it is there already."""
        if upto <= self.seq:
            return
        shape = touched_shape(reader, self.table, self.seq, upto, self._relation)
        if shape is not None:
            self.delta.evolve(shape.target)
            for attempt in range(ATTEMPTS):
                try:
                    self._publish(reader, upto, shape, Stamp(lsn, self._relation, upto))
                    break
                except Exception as error:
                    # Somebody optimised the table meanwhile: nothing of ours is in it, so try again.
                    if "Concurrent" not in str(error) or attempt + 1 == ATTEMPTS:
                        raise
            failpoint("publish.table")
        self.seq = upto

    def _publish(self, reader: LogReader, upto: int, shape: TableShape, stamp: Stamp) -> None:
        if reader.bytes_between(self.seq, upto) > DRIVER_BYTES_MAX:
            try:
                self._publish_spread(reader, upto, shape, stamp)
                return
            except MovedRowsError:
                pass
        self._publish_here(Tail(shape, changes_on_driver(reader, self.seq, upto, shape)), stamp)

    def _publish_here(self, tail: Tail, stamp: Stamp) -> None:
        if tail.truncated:
            self.delta.replace_with(self.delta.frame(tail.states), tail.schema, stamp)
        elif tail.states.num_rows:
            states = fill_moved(tail.states, tail.schema.key, self.delta.rows_of)
            self.delta.publish(states, tail.schema, stamp)

    def _publish_spread(self, reader: LogReader, upto: int, shape: TableShape, stamp: Stamp) -> None:
        spread = SpreadTail(self.delta.spark, reader, shape, self.seq, upto)
        with explained():
            if spread.truncated:
                self.delta.replace_with(spread.states, shape.target, stamp)
            else:
                self.delta.publish_frame(spread.states, shape.target, stamp)
