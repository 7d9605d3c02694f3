"""Records as a busy source sends them, made with vectors so that making them costs next to nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tailrace.log.files.record import RECORD
from tailrace.model.kind import Kind

CHANGES_PER_TRANSACTION = 20
TABLES = 8
FIRST_TABLE = 16384
"""Where Postgres starts to number what users make."""
PAYLOAD_BYTES = 120
"""About a seven-column row as Postgres sends it."""

_RANDOM = np.random.default_rng(7)


def transactions(first_xid: int, count: int) -> pa.RecordBatch:
    """Whole transactions one after the other; xid and commit LSN count up from `first_xid`."""
    width = CHANGES_PER_TRANSACTION + 2
    xid = np.repeat(np.arange(first_xid, first_xid + count, dtype=np.uint64), width)
    kind = np.full((count, width), Kind.INSERT, dtype=np.uint8)
    kind[:, 0], kind[:, -1] = Kind.BEGIN, Kind.COMMIT
    size = np.full((count, width), PAYLOAD_BYTES, dtype=np.int32)
    size[:, 0], size[:, -1] = 0, 24
    relation = np.where(kind == Kind.INSERT, _tables((count, width)), 0).astype(np.uint32)
    payload = _payload(size.ravel(), np.arange(first_xid, first_xid + count), kind.ravel() == Kind.COMMIT)
    return _batch(xid, kind.ravel(), relation.ravel(), payload)


def changes(xid: int, count: int) -> pa.RecordBatch:
    """Changes of one transaction."""
    size = np.full(count, PAYLOAD_BYTES, dtype=np.int32)
    kind = np.full(count, Kind.INSERT, dtype=np.uint8)
    relation = _tables((count,)).astype(np.uint32)
    return _batch(np.full(count, xid, dtype=np.uint64), kind, relation, _payload(size, np.zeros(0), kind == 0))


def control(kind: Kind, xid: int, ordinal: int = 0) -> pa.RecordBatch:
    """One BEGIN, COMMIT or ROLLBACK."""
    is_commit = np.array([kind == Kind.COMMIT])
    payload = _payload(np.where(is_commit, 24, 0).astype(np.int32), np.array([ordinal] * int(is_commit[0])), is_commit)
    return _batch(np.array([xid], np.uint64), np.array([kind], np.uint8), np.zeros(1, np.uint32), payload)


def _tables(shape: tuple[int, ...]) -> Any:
    """A table for each change, whatever the one before it was."""
    return FIRST_TABLE + 11 * _RANDOM.integers(0, TABLES, shape)


def _payload(size: Any, commit_ordinals: Any, is_commit: Any) -> pa.Array:
    offsets = np.zeros(len(size) + 1, dtype=np.int32)
    np.cumsum(size, out=offsets[1:])
    data = _RANDOM.integers(0, 256, max(1, int(offsets[-1])), dtype=np.uint8)
    commits = np.zeros((len(commit_ordinals), 3), dtype=">u8")
    commits[:, 0], commits[:, 1] = commit_ordinals, commit_ordinals
    data[offsets[:-1][is_commit][:, None] + np.arange(24)] = commits.view(np.uint8).reshape(len(commits), 24)
    return pa.Array.from_buffers(pa.binary(), len(size), [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def _batch(xid: Any, kind: Any, relation: Any, payload: pa.Array) -> pa.RecordBatch:
    columns = [xid, xid, np.zeros(len(xid), dtype=np.uint64), kind, relation]
    return pa.RecordBatch.from_arrays([*(pa.array(column) for column in columns), payload], schema=RECORD)
