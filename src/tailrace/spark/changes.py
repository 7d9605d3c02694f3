"""A table's changes in a range of transactions, decoded.

The same function runs on Spark executors, a piece of the log each, and on the driver when the
range is so small that handing it out would take longer than reading it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from tailrace.log.playback import PLAYBACK, read
from tailrace.log.ranges import ByteRange
from tailrace.log.reader import LogReader
from tailrace.source.postgres.pgoutput import decoded_schema
from tailrace.spark.shape import TableShape

DECODE_BYTES = 16 << 20
"""Records are decoded in portions of about this size: many at once, but never all."""
PIECE_BYTES = 32 << 20


def decode_pieces(
    log: Path, pieces: Iterable[ByteRange], after: int, upto: int, shape: TableShape
) -> Iterator[pa.RecordBatch]:
    """Typed changes of one table, as `decoded_schema(shape.target)` says."""
    portion: list[pa.RecordBatch] = []
    weight = 0
    for piece in pieces:
        for batch in read(log, piece, after, upto, shape.relations):
            portion.append(batch)
            weight += batch.nbytes
            if weight >= DECODE_BYTES:
                yield from shape.decode(pa.Table.from_batches(portion, PLAYBACK))
                portion, weight = [], 0
    if portion:
        yield from shape.decode(pa.Table.from_batches(portion, PLAYBACK))


def changes_on_driver(reader: LogReader, after: int, upto: int, shape: TableShape) -> pa.Table:
    """The whole range in this process's memory."""
    pieces = reader.ranges(after, upto, PIECE_BYTES, shape.relations)
    batches = decode_pieces(reader.path, pieces, after, upto, shape)
    return pa.Table.from_batches(batches, decoded_schema(shape.target))
