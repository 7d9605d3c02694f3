"""A table's changes in a range of transactions, decoded: a part of the range in each task, or all of it in one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from tailrace.changes.shape import TableShape
from tailrace.log.playback.play import PLAYBACK, read
from tailrace.log.playback.ranges import ByteRange
from tailrace.log.reader import LogReader
from tailrace.model.change import change_schema
from tailrace.model.rows.exact import together

DECODE_BYTES = 16 << 20
"""Records are decoded in portions of about this size: many at once, but never all."""
RANGE_BYTES = 32 << 20


def decode_ranges(
    log: Path, ranges: Iterable[ByteRange], after: int, upto: int, shape: TableShape, only: np.ndarray | None = None
) -> Iterator[pa.RecordBatch]:
    """Typed changes of one table, as `change_schema(shape.target)` says, some with the columns of `model.rows.exact`;
    with `only`, of these transactions alone."""
    portion: list[pa.RecordBatch] = []
    weight = 0
    for each in ranges:
        for batch in read(log, each, after, upto, shape.relations):
            portion.append(batch if only is None else _of(batch, only))
            weight += portion[-1].nbytes
            if weight >= DECODE_BYTES:
                yield from shape.decode(pa.Table.from_batches(portion, PLAYBACK))
                portion, weight = [], 0
    if portion:
        yield from shape.decode(pa.Table.from_batches(portion, PLAYBACK))


def _of(records: pa.RecordBatch, seqs: np.ndarray) -> pa.RecordBatch:
    return records.filter(pa.array(np.isin(records.column("seq").to_numpy(), seqs)))


@dataclass(frozen=True)
class Changes:
    """Where a table's changes lie in the log, and how to read them. Travels."""

    log: Path
    shape: TableShape
    after: int
    upto: int
    ranges: tuple[ByteRange, ...]

    @classmethod
    def of(
        cls, reader: LogReader, shape: TableShape, between: tuple[int, int], range_bytes: int = RANGE_BYTES
    ) -> Changes:
        """Those of transactions after < seq <= upto (`between`), in parts of about this size."""
        return cls(reader.path, shape, *between, tuple(reader.ranges(*between, range_bytes, shape.relations)))

    def decoded(self, ranges: Iterable[ByteRange], only: np.ndarray | None = None) -> Iterator[pa.RecordBatch]:
        return decode_ranges(self.log, ranges, self.after, self.upto, self.shape, only)

    def table(self, bytes_max: float = math.inf, only: np.ndarray | None = None) -> pa.Table | None:
        """All of them, or those of `only` some transactions, in memory; None if they would take more than this."""
        found, weight = [], 0
        for batch in self.decoded(self.ranges, only):
            found.append(batch)
            weight += batch.nbytes
            if weight > bytes_max:
                return None
        return together(found, change_schema(self.shape.target))
