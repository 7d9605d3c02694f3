"""Compaction of a large range on Spark's executors.

    parts of the range ─ decode, events ─┬─ shuffle by key ─ compact ─ states
                                         └─ every key's events meet in one task

Needs no more memory than one task's share, whatever the size of the transaction. A row that changed its key and left
columns out would need another task's events; a range that has one is refused and compacted on the driver instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from tailrace.changes.compaction import compact
from tailrace.changes.decoding import decode_ranges
from tailrace.changes.events import events
from tailrace.changes.shape import TableShape
from tailrace.errors import TransientError
from tailrace.lake.frames import spark_schema
from tailrace.log.playback import read
from tailrace.log.ranges import ByteRange
from tailrace.log.reader import LogReader
from tailrace.model.change import FROM, KEY, POS, SEQ, change_schema
from tailrace.model.kind import Kind
from tailrace.spark.task_errors import errors_sent

TASK_BYTES = 16 << 20
"""About this much of the log for each task, before and after the shuffle."""

Batches = Iterable[pa.RecordBatch]


class MovedRowsError(TransientError):
    """The range has rows that moved and left columns out."""


class ExecutorTail:
    """The compacted changes of one table in a range, as a DataFrame. Nothing runs until it is used."""

    def __init__(self, spark: SparkSession, reader: LogReader, shape: TableShape, after: int, upto: int) -> None:
        ranges = reader.ranges(after, upto, TASK_BYTES, shape.relations)
        last = _last_truncate(reader.path, ranges, after, upto, shape)
        self.truncated = last is not None
        columns = shape.target.names
        empty = events(change_schema(shape.target).empty_table(), shape.target.key, columns)
        plan = spark.createDataFrame([(number, each.to_json()) for number, each in enumerate(ranges)])
        numbered = empty.rename_columns(_numbers(empty)).schema
        found = plan.repartitionByRange(len(ranges), plan.columns[0]).mapInArrow(
            _reader_of_events(reader.path, shape, after, upto, last), spark_schema(numbered)
        )
        key = numbered.names[empty.schema.get_field_index(KEY)]
        self.states: DataFrame = found.repartition(len(ranges), key).mapInArrow(
            _compactor(columns, empty.schema), spark_schema(compact(empty, columns).schema)
        )


def _reader_of_events(
    log: Path, shape: TableShape, after: int, upto: int, last_truncate: tuple[int, int] | None
) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    def read_events(plan: Batches) -> Iterator[pa.RecordBatch]:
        with errors_sent():
            for batch in plan:
                ranges = [ByteRange.from_json(text) for text in batch.column(1).to_pylist()]
                for changes in decode_ranges(log, ranges, after, upto, shape):
                    kept = _after(pa.Table.from_batches([changes]), last_truncate)
                    found = events(kept, shape.target.key, shape.target.names)
                    if found.column(FROM).null_count < found.num_rows:
                        raise MovedRowsError("moved rows")
                    yield from found.rename_columns(_numbers(found)).to_batches()

    return read_events


def _compactor(columns: tuple[str, ...], schema: pa.Schema) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    def compact_share(share: Batches) -> Iterator[pa.RecordBatch]:
        batches = [batch.rename_columns(schema.names) for batch in share]
        yield from compact(pa.Table.from_batches(batches, schema), columns).to_batches()

    return compact_share


def _numbers(events: pa.Table) -> list[str]:
    """Names for events on their way: pyspark takes neither a dot nor a backtick in the names that a function is given,
    and a table's columns may have both."""
    return [f"c{number}" for number in range(events.num_columns)]


def _after(changes: pa.Table, last_truncate: tuple[int, int] | None) -> pa.Table:
    if last_truncate is None:
        return changes
    seq, position = last_truncate
    in_later = pc.greater(changes.column(SEQ), seq)
    later_in_same = pc.and_(pc.equal(changes.column(SEQ), seq), pc.greater(changes.column(POS), position))
    return changes.filter(pc.or_(in_later, later_in_same))


def _last_truncate(
    log: Path, ranges: list[ByteRange], after: int, upto: int, shape: TableShape
) -> tuple[int, int] | None:
    """Transaction and position of the table's last truncate; looks at kinds only, nothing is decoded."""
    last: tuple[int, int] | None = None
    for each in ranges:
        for batch in read(log, each, after, upto, shape.relations):
            rows = np.flatnonzero(batch.column("kind").to_numpy() == Kind.TRUNCATE)
            for row in rows.tolist():
                found = batch.column("seq")[row].as_py(), batch.column("position")[row].as_py()
                last = max(last or found, found)
    return last
