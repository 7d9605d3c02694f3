"""Records from the server's messages, built a batch at a time.

Nothing is done for each change of a row: where its transaction, its table and its payload are is known for all messages
of a batch at once, and so it is for transactions that come whole:

    message   w  LSN  end  clock  │  I  [sub-transaction]  relation  N …
              0  1    9    17     25    only when streamed

    message   w  LSN  end  clock  │  C  flags  commit LSN  end LSN  time
                                        27: what the log keeps of it, but for its epoch and its history

A payload is a part of its message. What the log has otherwise is changed where it lies.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tailrace.log.files.record import RECORD
from tailrace.model.kind import Kind
from tailrace.source.postgres.server.history import FIRST, History
from tailrace.source.postgres.stream.encoding.heads import AFTER_TAG, HEADER_BYTES, Array, Heads, Whole
from tailrace.source.postgres.stream.inbox import Messages
from tailrace.source.postgres.values.messages import POSTGRES_EPOCH_US, malformed

_XID_BYTES = 4
_STREAMED_BYTES_MIN = HEADER_BYTES + 10
_COMMIT_AT = HEADER_BYTES + 2
_TIME_AT = _COMMIT_AT + 16
_KINDS = np.zeros(256, np.uint8)
for _tag, _kind in zip(b"IUDBC", (Kind.INSERT, Kind.UPDATE, Kind.DELETE, Kind.BEGIN, Kind.COMMIT), strict=True):
    _KINDS[_tag] = _kind
_BEGIN, _COMMIT, _INSERT = (np.uint8(kind) for kind in (Kind.BEGIN, Kind.COMMIT, Kind.INSERT))


@dataclass(frozen=True)
class _Span:
    """Messages that are a record each."""

    at: int
    """The first one's record."""
    start: int
    stop: int
    xid: int | Array
    is_streamed: bool = False

    @property
    def records(self) -> slice:
        return slice(self.at, self.at + self.stop - self.start)


class RecordList:
    """Records of one batch of messages, in order. Uses the messages up."""

    def __init__(self, messages: Messages, history: History = FIRST) -> None:
        self.heads = Heads.of(messages)
        self._history = history
        self._count = 0
        self._spans: list[_Span] = []
        self._at: list[int] = []
        """Which records are of no span. What they are follows, and what some of them have besides."""
        self._added: list[tuple[int, int, int]] = []
        """Ordinal, transaction, kind."""
        self._payloads: list[bytes] = []
        self._about: list[tuple[int, int, int]] = []
        """Record, relation, sub-transaction."""

    def relation_of(self, row: int, is_streamed: bool) -> int:
        """The table that a change is of. A definite error for one that is too short."""
        if is_streamed and self.heads.lengths[row] < _STREAMED_BYTES_MIN:
            raise malformed("streamed change")
        return int(self.heads.uint32(np.array([row]), AFTER_TAG + (_XID_BYTES if is_streamed else 0))[0])

    def add_changes(self, start: int, stop: int, xid: int, is_streamed: bool) -> None:
        """The changes that these messages are."""
        self._add_span(_Span(self._count, start, stop, xid, is_streamed))

    def add_whole(self, whole: Whole) -> None:
        """These transactions, each with its beginning, its changes and its commit."""
        self._add_span(_Span(self._count, whole.start, whole.stop, whole.xids))

    def add(
        self, ordinal: int, xid: int, kind: Kind, payload: bytes = b"", relation: int = 0, sub_xid: int = 0
    ) -> None:
        self._at.append(self._count)
        self._added.append((ordinal, xid, kind))
        self._payloads.append(payload)
        if relation or sub_xid:
            self._about.append((self._count, relation, sub_xid))
        self._count += 1

    def _add_span(self, span: _Span) -> None:
        self._spans.append(span)
        self._count += span.stop - span.start

    def to_batch(self) -> pa.RecordBatch:
        """A definite error for a change that is too short to be one."""
        heads = self.heads
        rows = np.zeros(self._count, np.int64)
        ordinal, xid, sub_xid = (np.zeros(self._count, np.uint64) for _ in range(3))
        for span in self._spans:
            rows[span.records], xid[span.records] = np.arange(span.start, span.stop), span.xid
        at = np.array(self._at, np.int64)
        sent = np.delete(np.arange(self._count), at) if len(at) else slice(None)
        kind = _KINDS[heads.tags[rows]]
        ordinal[sent] = heads.lsn(rows[sent])
        added = np.array(self._added, np.uint64).reshape(-1, 3)
        ordinal[at], xid[at], kind[at] = added.T
        relation = self._relations(rows, kind, at, xid, sub_xid)
        ordinal |= np.uint64(self._history.ordinal(0))
        payload = self._cut_out(rows, kind, at)
        arrays = [_arrow(values) for values in (ordinal, xid, sub_xid, kind, relation)]
        return pa.RecordBatch.from_arrays([*arrays, payload], schema=RECORD)

    def _relations(self, rows: Array, kind: Array, at: Array, xid: Array, sub_xid: Array) -> Array:
        """Each record's table; fills in the sub-transactions."""
        heads = self.heads
        relation = np.zeros(len(rows), np.uint32)
        changes = np.flatnonzero(kind >= _INSERT)
        # That of a single record, which has no message, is nonsense until it is known.
        relation[changes] = heads.uint32(rows[changes], AFTER_TAG)
        relation[at] = 0
        for part in (span.records for span in self._spans if span.is_streamed):
            if (heads.lengths[rows[part]] < _STREAMED_BYTES_MIN).any():
                raise malformed("streamed change")
            # What stands where the relation is elsewhere.
            sub_xid[part] = np.where(relation[part] == xid[part], 0, relation[part])
            relation[part] = heads.uint32(rows[part], AFTER_TAG + _XID_BYTES)
        for row, of_relation, of_sub_xid in self._about:
            relation[row], sub_xid[row] = of_relation, of_sub_xid
        return relation

    def _cut_out(self, rows: Array, kind: Array, at: Array) -> Any:
        """The payloads as a binary array, without an object for each: an array over the messages' own bytes, whose
        offsets alternate between the start and the end of a payload, has the payloads as its odd elements."""
        heads = self.heads
        edges = np.zeros(2 * len(rows) + 2, np.int32)
        bounds = edges[1:-1].reshape(-1, 2)
        bounds[:, 0] = heads.starts[rows] + HEADER_BYTES
        bounds[:, 1] = heads.starts[rows] + heads.lengths[rows]
        for span in self._spans:
            if span.is_streamed:
                self._cover_sub_transactions(span)
                bounds[span.records, 0] += _XID_BYTES
        kind = kind.copy()
        kind[at] = 0
        begins, commits = np.flatnonzero(kind == _BEGIN), np.flatnonzero(kind == _COMMIT)
        bounds[begins, 1] = bounds[begins, 0]
        if len(commits):
            self._complete_commits(heads.starts[rows[commits]])
            bounds[commits, 0] += _COMMIT_AT - HEADER_BYTES
        data = heads.data
        if len(at):
            lengths = np.fromiter(map(len, self._payloads), np.int64, len(at))
            bounds[at, 1] = len(data) + np.cumsum(lengths)
            bounds[at, 0] = bounds[at, 1] - lengths
            data = np.concatenate((data, np.frombuffer(b"".join(self._payloads), np.uint8)))
        edges[-1] = len(data)
        buffers = [None, pa.py_buffer(edges), pa.py_buffer(data)]
        alternating = pa.BinaryArray.from_buffers(pa.binary(), len(edges) - 1, buffers)
        return alternating.take(_arrow(np.arange(1, len(edges) - 1, 2, dtype=np.int32)))

    def _cover_sub_transactions(self, span: _Span) -> None:
        """Move each change's tag to where its relation follows it."""
        starts = self.heads.starts[span.start : span.stop]
        self.heads.data[starts + HEADER_BYTES + _XID_BYTES] = self.heads.data[starts + HEADER_BYTES]

    def _complete_commits(self, starts: Array) -> None:
        """Make the messages' commits those of the log: Unix time, and ordinals in the place of LSNs."""
        self.heads.numbers(">i8")[starts + _TIME_AT] += POSTGRES_EPOCH_US
        history = self._history.ordinal(0)
        if history:
            ordinals = self.heads.numbers(">u8")
            for place in (_COMMIT_AT, _COMMIT_AT + 8):
                ordinals[starts + place] |= np.uint64(history)


def _arrow(values: Array) -> Any:
    """The same numbers, not copied. `pa.array` would load NumPy's masked arrays first, in a tenth of a second."""
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])
