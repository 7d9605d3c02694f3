"""A table's changes in a range of transactions, decoded.

The same function runs on Spark executors, a part of the range each, and in this process when the range is so
small that handing it out would take longer than reading it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from tailrace.changes.shape import TableShape
from tailrace.log.playback import PLAYBACK, read
from tailrace.log.ranges import ByteRange
from tailrace.log.reader import LogReader
from tailrace.model.change import change_schema
from tailrace.model.exact import together

DECODE_BYTES = 16 << 20
"""Records are decoded in portions of about this size: many at once, but never all."""
RANGE_BYTES = 32 << 20


def decode_ranges(
    log: Path, ranges: Iterable[ByteRange], after: int, upto: int, shape: TableShape, only: np.ndarray | None = None
) -> Iterator[pa.RecordBatch]:
    """Typed changes of one table, as `change_schema(shape.target)` says, some with the columns of `model.exact`; with
    `only`, of these transactions alone."""
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


def changes_here(
    reader: LogReader,
    after: int,
    upto: int,
    shape: TableShape,
    bytes_max: float = math.inf,
    only: np.ndarray | None = None,
) -> pa.Table | None:
    """The whole range, or `only` some transactions of it, in this process's memory; None if it would take more than
    `bytes_max`."""
    found, weight = [], 0
    ranges = reader.ranges(after, upto, RANGE_BYTES, shape.relations)
    for batch in decode_ranges(reader.path, ranges, after, upto, shape, only):
        found.append(batch)
        weight += batch.nbytes
        if weight > bytes_max:
            return None
    return together(found, change_schema(shape.target))
