"""Records from the server's messages, built a batch at a time.

Changes of rows are nearly all there is, so nothing is done for each but to cut out its payload. Where its transaction,
its table and its place are is known for all messages of a batch at once:

    message   w  LSN  end  clock  │  I  [sub-transaction]  relation  N …
              0  1    9    17     25    only when streamed
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tailrace.log.record import RECORD
from tailrace.model.kind import Kind
from tailrace.source.postgres._history import FIRST, History
from tailrace.source.postgres._messages import malformed

HEADER_BYTES = 25
"""`w`, the record's LSN, the server's WAL end, the clock; the pgoutput message follows."""
KEEPALIVE_BYTES = 18
KEEPALIVE, UNKNOWN = ord("k"), 0

_DATA = ord("w")
_AFTER_TAG = HEADER_BYTES + 1
_CHANGE_BYTES_MIN = HEADER_BYTES + 6
_XID_BYTES = 4
_KINDS = np.zeros(256, np.uint8)
for _tag, _kind in {b"I": Kind.INSERT, b"U": Kind.UPDATE, b"D": Kind.DELETE}.items():
    _KINDS[_tag[0]] = _kind

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Heads:
    """What the first bytes of each message say."""

    data: Array
    starts: Array
    lengths: Array
    tags: Array
    """pgoutput's, KEEPALIVE, or UNKNOWN for what is neither."""

    @classmethod
    def of(cls, messages: Sequence[bytes]) -> Heads:
        # One byte more, so that there is a first one at the end of an empty last message too.
        data = np.frombuffer(b"".join((*messages, b"\0")), np.uint8)
        lengths = np.fromiter(map(len, messages), np.int64, len(messages))
        starts = np.cumsum(lengths) - lengths
        first = data[starts]
        tags = np.where((first == KEEPALIVE) & (lengths == KEEPALIVE_BYTES), KEEPALIVE, UNKNOWN).astype(np.uint8)
        sent = np.flatnonzero((first == _DATA) & (lengths > HEADER_BYTES))
        tags[sent] = data[starts[sent] + HEADER_BYTES]
        # A pgoutput message has no tag k.
        tags[sent[tags[sent] == KEEPALIVE]] = UNKNOWN
        tags[(_KINDS[tags] > 0) & (lengths < _CHANGE_BYTES_MIN)] = UNKNOWN
        return cls(data, starts, lengths, tags)

    @property
    def rare(self) -> list[int]:
        """Which are no changes of rows."""
        found: list[int] = np.flatnonzero(_KINDS[self.tags] == 0).tolist()
        return found

    def lsn(self, rows: Array) -> Array:
        return self._numbers(">u8", self.starts[rows] + 1)

    def uint32(self, rows: Array, offset: int) -> Array:
        return self._numbers(">u4", self.starts[rows] + offset)

    def _numbers(self, dtype: str, at: Array) -> Array:
        """The numbers whose first bytes are these, through a view whose elements overlap."""
        count = len(self.data) - np.dtype(dtype).itemsize + 1
        return np.ndarray((count,), dtype=dtype, buffer=self.data, strides=(1,))[at]


class RecordList:
    """Records of one batch of messages, in order."""

    def __init__(self, messages: Sequence[bytes], history: History = FIRST) -> None:
        self.heads = Heads.of(messages)
        self._history = history
        self._messages = messages
        self._rows: list[int] = []
        """Of each record its message; of one that is no change, any."""
        self._payloads: list[bytes] = []
        self._xids: list[int] = []
        self._streamed: list[tuple[int, int]] = []
        """Which records are changes of streamed blocks: from, up to."""
        self._at: list[int] = []
        """Which records are no changes. Their ordinals and kinds follow, and what some of them have besides."""
        self._ordinals: list[int] = []
        self._kinds: list[int] = []
        self._about: list[tuple[int, int, int]] = []
        """Record, relation, sub-transaction."""

    def add_changes(self, start: int, stop: int, xid: int, is_streamed: bool) -> None:
        """The changes that these messages are."""
        taken = self._messages[start:stop]
        if is_streamed:
            self._streamed.append((len(self._rows), len(self._rows) + stop - start))
            self._payloads += [
                message[HEADER_BYTES:_AFTER_TAG] + message[_AFTER_TAG + _XID_BYTES :] for message in taken
            ]
        else:
            self._payloads += [message[HEADER_BYTES:] for message in taken]
        self._rows += range(start, stop)
        self._xids += [xid] * (stop - start)

    def add(
        self, ordinal: int, xid: int, kind: Kind, payload: bytes = b"", relation: int = 0, sub_xid: int = 0
    ) -> None:
        at = len(self._rows)
        self._at.append(at)
        self._ordinals.append(ordinal)
        self._kinds.append(kind)
        if relation or sub_xid:
            self._about.append((at, relation, sub_xid))
        self._rows.append(0)
        self._payloads.append(payload)
        self._xids.append(xid)

    def to_batch(self) -> pa.RecordBatch:
        """A definite error for a change that is too short to be one."""
        rows = np.array(self._rows, np.int64)
        xid = np.array(self._xids, np.uint64)
        ordinal, sub_xid, relation = (np.zeros(len(rows), np.uint64) for _ in range(3))
        kind = np.zeros(len(rows), np.uint8)
        at = np.array(self._at, np.int64)
        ordinal[at], kind[at] = self._ordinals, self._kinds
        changes = np.flatnonzero(kind == 0)
        ordinal[changes] = self.heads.lsn(rows[changes])
        relation[changes] = self.heads.uint32(rows[changes], _AFTER_TAG)
        kind[changes] = _KINDS[self.heads.tags[rows[changes]]]
        for start, stop in self._streamed:
            part = slice(start, stop)
            if (self.heads.lengths[rows[part]] < _CHANGE_BYTES_MIN + _XID_BYTES).any():
                raise malformed("streamed change")
            # What stands where the relation is elsewhere.
            sub_xid[part] = np.where(relation[part] == xid[part], 0, relation[part])
            relation[part] = self.heads.uint32(rows[part], _AFTER_TAG + _XID_BYTES)
        for row, of_relation, of_sub_xid in self._about:
            relation[row], sub_xid[row] = of_relation, of_sub_xid
        ordinal |= np.uint64(self._history.ordinal(0))
        columns = (ordinal, xid, sub_xid, kind, relation, self._payloads)
        arrays = [pa.array(values, field.type) for values, field in zip(columns, RECORD, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=RECORD)
