"""Compaction of a large range on Spark's executors.

    parts of the range ─ decode, events, split by key ─┬─ Spark's shuffle ─ compact, write ─ parts of a version
                                                       └─ every key's events meet in one task

Rows do not travel as rows: a task hands on one Arrow blob for each task after the shuffle, and only those cross into
the JVM. Needs no more memory than one task's share, whatever the size of the transaction.

Of a table without a key, equal rows meet instead; they have been counted before they travel.

A row that changed its key and left columns out takes them from events of its old key, so the two keys must meet in one
task. Where there are such rows, they are looked for first, and keys that are joined by moves go where one of them goes.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from tailrace.changes.decoding import decode_ranges
from tailrace.changes.shape import TableShape
from tailrace.changes.states import events_of, states_of
from tailrace.errors import TransientError
from tailrace.lake.door import Part, WritePart
from tailrace.lake.key_index import key_codes
from tailrace.log.playback import read
from tailrace.log.ranges import ByteRange
from tailrace.log.reader import LogReader
from tailrace.model.change import FROM, KEY, POS, SEQ
from tailrace.model.exact import exact_of, together
from tailrace.model.kind import Kind
from tailrace.model.table import TableSchema
from tailrace.spark.task_errors import errors_received, errors_sent

READ_BYTES = 16 << 20
"""About this much of the log for each task that decodes."""
FOLD_BYTES = 48 << 20
"""About this much of it for each task that compacts."""
_SPREAD = np.uint64(0x9E3779B97F4A7C15)

Batches = Iterable[pa.RecordBatch]


class MovedRowsError(TransientError):
    """The range has rows that moved and left columns out."""


@dataclass(frozen=True)
class _Meetings:
    """Keys that must go to the task of another: sorted codes, and the code that counts instead."""

    codes: np.ndarray
    instead: np.ndarray

    def targets(self, codes: np.ndarray, tasks: int) -> np.ndarray:
        """The task of each key."""
        if len(self.codes):
            places = np.minimum(self.codes.searchsorted(codes), len(self.codes) - 1)
            codes = np.where(self.codes[places] == codes, self.instead[places], codes)
        return ((codes * _SPREAD) >> np.uint64(32)) % np.uint64(tasks)


NO_MEETINGS = _Meetings(np.empty(0, np.uint64), np.empty(0, np.uint64))


@dataclass(frozen=True)
class _Events:
    """Reads a table's events in parts of the log; travels to executors."""

    log: Path
    shape: TableShape
    after: int
    upto: int
    last_truncate: tuple[int, int] | None

    def read(self, plan: Batches) -> Iterator[pa.Table]:
        for batch in plan:
            ranges = [ByteRange.from_json(text) for text in batch.column(1).to_pylist()]
            for changes in decode_ranges(self.log, ranges, self.after, self.upto, self.shape):
                kept = _after(pa.Table.from_batches([changes]), self.last_truncate)
                yield events_of(kept, self.shape.target)


class ExecutorTail:
    """The compacted changes of one table in a range."""

    def __init__(self, spark: SparkSession, reader: LogReader, shape: TableShape, after: int, upto: int) -> None:
        self._spark = spark
        self._ranges = reader.ranges(after, upto, READ_BYTES, shape.relations)
        last = _last_truncate(reader.path, self._ranges, after, upto, shape)
        self.truncated = last is not None
        self._events = _Events(reader.path, shape, after, upto, last)
        self._tasks = max(2, -(-reader.bytes_between(after, upto) // FOLD_BYTES))

    def folded(self, write: WritePart) -> list[Part]:
        """What becomes of the states, a part for each task."""
        with errors_received():
            try:
                return self._run(write, NO_MEETINGS)
            except MovedRowsError:
                return self._run(write, self._meetings())

    def _plan(self) -> DataFrame:
        listed = [(number, each.to_json()) for number, each in enumerate(self._ranges)]
        return self._spark.createDataFrame(listed, "number int, range string").repartitionById(len(listed), "number")

    def _run(self, write: WritePart, meetings: _Meetings) -> list[Part]:
        with errors_received():
            blobs = self._plan().mapInArrow(_splitter(self._events, meetings, self._tasks), "task int, blob binary")
            met = blobs.repartitionById(self._tasks, "task")
            found = met.mapInArrow(_folder(self._events.shape.target, write), "part binary")
            return [pickle.loads(row["part"]) for row in found.collect()]

    def _meetings(self) -> _Meetings:
        with errors_received():
            found = self._plan().mapInArrow(_finder_of_moves(self._events), "old binary, new binary").collect()
        old, new = (np.concatenate([np.frombuffer(row[name], np.uint64) for row in found]) for name in ("old", "new"))
        return _joined(old, new)


def _splitter(source: _Events, meetings: _Meetings, tasks: int) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    schema = source.shape.target

    def split(plan: Batches) -> Iterator[pa.RecordBatch]:
        with errors_sent():
            for found in source.read(plan):
                if schema.key and not len(meetings.codes) and found.column(FROM).null_count < found.num_rows:
                    raise MovedRowsError("moved rows")
                codes = _codes(found.column(KEY)) if schema.key else _row_codes(found, schema)
                yield from _blobs(found, meetings.targets(codes, tasks), tasks)

    return split


def _blobs(found: pa.Table, targets: np.ndarray, tasks: int) -> Iterator[pa.RecordBatch]:
    """The events of each task, as one binary value."""
    order = np.argsort(targets, kind="stable")
    ordered = found.take(pa.array(order)).combine_chunks()
    ends = np.cumsum(np.bincount(targets.astype(np.int64), minlength=tasks))
    for task, (begin, end) in enumerate(zip(np.r_[0, ends[:-1]].tolist(), ends.tolist(), strict=True)):
        if end > begin:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, ordered.schema) as writer:
                writer.write_table(ordered.slice(begin, end - begin))
            blob = pa.array([sink.getvalue().to_pybytes()], pa.binary())
            yield pa.RecordBatch.from_arrays([pa.array([task], pa.int32()), blob], ["task", "blob"])


def _folder(schema: TableSchema, write: WritePart) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    def fold(share: Batches) -> Iterator[pa.RecordBatch]:
        blobs = [blob for batch in share for blob in batch.column(1)]
        if blobs:
            with errors_sent():
                tables = [pa.ipc.open_stream(blob.as_buffer()).read_all() for blob in blobs]
                part = write(states_of(together(tables, tables[0].schema), schema).to_batches())
            yield pa.RecordBatch.from_pydict({"part": pa.array([pickle.dumps(part)], pa.binary())})

    return fold


def _finder_of_moves(source: _Events) -> Callable[[Batches], Iterator[pa.RecordBatch]]:
    def find(plan: Batches) -> Iterator[pa.RecordBatch]:
        with errors_sent():
            for found in source.read(plan):
                moved = found.filter(found.column(FROM).is_valid())
                if moved.num_rows:
                    codes = [_codes(moved.column(name)).tobytes() for name in (FROM, KEY)]
                    yield pa.RecordBatch.from_pydict(
                        {name: pa.array([code], pa.binary()) for name, code in zip(("old", "new"), codes, strict=True)}
                    )

    return find


def _codes(keys: pa.ChunkedArray) -> np.ndarray:
    key = keys.combine_chunks()
    return key_codes([pc.struct_field(key, [index]) for index in range(key.type.num_fields)]).first


def _row_codes(rows: pa.Table, schema: TableSchema) -> np.ndarray:
    columns = [rows.column(name).combine_chunks() for name in schema.names]
    return key_codes(columns, whole_rows=True, exact=exact_of(rows)).first


def _joined(old: np.ndarray, new: np.ndarray) -> _Meetings:
    """Keys that moves join, however long the chain, go where the smallest code among them goes.

    So a chain is compacted in one task, in 0.6 KB of memory for each of its rows. Only rows that left large values out
    count, and only a statement that gives rows the keys of others makes a long one: `set id = id + 1`.
    """
    codes, places = np.unique(np.r_[old, new], return_inverse=True)
    one, other = np.split(places, 2)
    smallest = np.arange(len(codes))
    while True:
        lower = np.minimum(smallest[one], smallest[other])
        before = smallest.copy()
        np.minimum.at(smallest, one, lower)
        np.minimum.at(smallest, other, lower)
        # Whoever follows another follows whom that one follows: chains halve.
        smallest = smallest[smallest]
        if (smallest == before).all():
            return _Meetings(codes, codes[smallest])


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
    """Transaction and position of the table's last truncate; the changes themselves are not read."""
    found = [
        each
        for part in ranges
        for batch in read(log, part, after, upto, shape.relations, {Kind.TRUNCATE})
        for each in zip(batch.column("seq").to_pylist(), batch.column("position").to_pylist(), strict=True)
    ]
    return max(found, default=None)
