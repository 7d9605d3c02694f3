"""One table's part of a batch: read its changes, compact them, publish them in one commit."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession

from tailrace.failpoint import failpoint
from tailrace.lake.compact import compact
from tailrace.lake.delta import DeltaTable
from tailrace.lake.events import events
from tailrace.lake.moved import fill_moved
from tailrace.lake.stamp import Stamp
from tailrace.log.reader import LogReader
from tailrace.model.table import TableId
from tailrace.spark.changes import changes_on_driver
from tailrace.spark.shape import TableShape, shape_of


class Tail:
    """What a table's changes in a range of transactions come to."""

    def __init__(self, shape: TableShape, changes: pa.Table) -> None:
        self.schema = shape.target
        truncates = pc.indices_nonzero(pc.equal(changes.column("_op"), "t"))
        self.truncated = len(truncates) > 0
        """The base's rows are gone; the states are all there is."""
        if self.truncated:
            changes = changes.slice(truncates[-1].as_py() + 1)
        self.states = compact(events(changes, shape.target.key, shape.target.names), shape.target.names)


def read_tail(reader: LogReader, table: TableId, after: int, upto: int) -> Tail | None:
    """The table's compacted changes of transactions after < seq <= upto; None if there are none."""
    if after >= upto:
        return None
    shape = shape_of(reader.schemas(), table, reader.head.position)
    if shape is None or not shape.relations & reader.relations(after, upto):
        return None
    changes = changes_on_driver(reader, after, upto, shape)
    changes = changes.sort_by([("_seq", "ascending"), ("_pos", "ascending")])
    return Tail(shape, changes) if changes.num_rows else None


class TableApplier:
    """Brings one lake table from the transaction it has to a newer one."""

    def __init__(self, spark: SparkSession, path: Path, table: TableId) -> None:
        self.table = table
        self.delta = DeltaTable(spark, path)
        self.seq = 0
        """The last transaction the table contains."""

    def apply(self, reader: LogReader, upto: int, stamp: Stamp) -> None:
        """Publish (seq, upto] in one commit; no commit if nothing concerns the table."""
        tail = read_tail(reader, self.table, self.seq, upto)
        if tail is not None:
            self._publish(tail, stamp)
            failpoint("publish.table")
        self.seq = upto

    def _publish(self, tail: Tail, stamp: Stamp) -> None:
        self.delta.evolve(tail.schema)
        if tail.truncated:
            self.delta.replace_with(tail.states, tail.schema, stamp)
        elif tail.states.num_rows:
            states = fill_moved(tail.states, tail.schema.key, self.delta.rows_of)
            self.delta.publish(states, tail.schema, stamp)
