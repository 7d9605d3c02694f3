"""Rows of both sides, dealt out by key to tasks that compare them.

Rows of one key meet in one task, and so do rows that are equal. A blob is a byte that names the side, and rows in
Arrow's IPC format. Nothing here knows a source, a lake or an engine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from tailrace.engine.dividing import TooLargeError
from tailrace.model.rows.codes import key_codes, tasks_of
from tailrace.verify.comparing import BothSides, Side, compare
from tailrace.verify.report import Compared

DEALT_BYTES = 8 << 20
"""Of rows that are dealt out at a time: blobs should not be tiny."""
Blob = bytes


@dataclass(frozen=True)
class TooManyRows:
    """What a task returns instead of a result: the blobs that it was dealt took this much."""

    bytes: int


def deal(batches: Iterable[Any], side: Side, key: Sequence[str], tasks: int) -> Iterator[tuple[int, Blob]]:
    """Blobs, each with the number of the task that its keys belong to. The `key` of rows without one is all their
    columns, but for what those cannot hold: rows that differ in that alone must meet, to be told from rows that are
    missing."""
    for rows in _gathered(batches):
        codes = key_codes([rows.column(name) for name in key]).first
        owners = tasks_of(codes, tasks).astype(np.int64)
        ordered = rows.take(pa.array(np.argsort(owners, kind="stable")))
        ends = np.cumsum(np.bincount(owners, minlength=tasks))
        for task, (begin, end) in enumerate(pairwise([0, *ends.tolist()])):
            if end > begin:
                yield task, bytes([side]) + _serialized(ordered.slice(begin, end - begin))


def compare_dealt(blobs: Iterable[Blob], both: BothSides, key: Sequence[str], keys_max: int) -> Compared | TooManyRows:
    """What differs among the rows of one task, gathered in `both`."""
    coming, taken = iter(blobs), 0
    try:
        for blob in coming:
            taken += len(blob)
            for batch in pa.ipc.open_stream(blob[1:]):
                both.add(batch, Side(blob[0]))
    except TooLargeError:
        return TooManyRows(taken + sum(map(len, coming)))
    return compare(both, key, keys_max)


def _gathered(batches: Iterable[Any]) -> Iterator[Any]:
    """The batches, put together until they are worth being dealt out."""
    waiting: list[Any] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.nbytes
        if size >= DEALT_BYTES:
            yield pa.concat_batches(waiting)
            waiting, size = [], 0
    if waiting:
        yield pa.concat_batches(waiting)


def _serialized(rows: Any) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue())
