"""The first bytes of the server's messages, read for a whole batch at once.

Whole transactions of nothing but changes are nearly all there is of a server with short ones, so they are found here
too, all that follow each other together. Whatever does not look as it should is left to be looked at by itself.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tailrace.source.postgres.stream.inbox import Messages

HEADER_BYTES = 25
"""`w`, the record's LSN, the server's WAL end, the clock; the pgoutput message follows."""
AFTER_TAG = HEADER_BYTES + 1
KEEPALIVE_BYTES = 18
BEGIN_BYTES, COMMIT_BYTES = HEADER_BYTES + 21, HEADER_BYTES + 26
KEEPALIVE, UNKNOWN = ord("k"), 0
BEGIN, COMMIT = b"BC"
TOGETHER_MIN = 4
"""Fewer transactions are not worth the arrays."""

_DATA = ord("w")
_LSN = struct.Struct(">xQ")
_CHANGE_BYTES_MIN = HEADER_BYTES + 6
_FINAL_LSN_AT, _XID_AT = AFTER_TAG, AFTER_TAG + 16
_COMMIT_LSN_AT = AFTER_TAG + 1
_IS_CHANGE = np.isin(np.arange(256), list(b"IUD"))

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Whole:
    """Transactions that follow each other, each with its beginning, changes and commit."""

    start: int
    stop: int
    """Messages."""
    first_commit: int
    last_commit: int
    """LSNs, which grow from one to the next."""
    xids: Array
    """Of each message."""


@dataclass(frozen=True)
class Heads:
    """What the first bytes of each message say."""

    data: Array
    starts: Array
    lengths: Array
    tags: Array
    """pgoutput's, KEEPALIVE, or UNKNOWN for what is neither."""

    @classmethod
    def of(cls, messages: Messages) -> Heads:
        # One byte more, so that there is a first one at the end of an empty last message too.
        messages.data.append(0)
        data = np.frombuffer(messages.data, np.uint8)
        lengths = np.array(messages.lengths, np.int64)
        starts = np.cumsum(lengths) - lengths
        first = data[starts]
        tags = np.where((first == KEEPALIVE) & (lengths == KEEPALIVE_BYTES), KEEPALIVE, UNKNOWN).astype(np.uint8)
        sent = np.flatnonzero((first == _DATA) & (lengths > HEADER_BYTES))
        tags[sent] = data[starts[sent] + HEADER_BYTES]
        # A pgoutput message has no tag k.
        tags[sent[tags[sent] == KEEPALIVE]] = UNKNOWN
        tags[_IS_CHANGE[tags] & (lengths < _CHANGE_BYTES_MIN)] = UNKNOWN
        return cls(data, starts, lengths, tags)

    def message(self, row: int) -> bytes:
        start = int(self.starts[row])
        return self.data[start : start + int(self.lengths[row])].tobytes()

    @cached_property
    def rare(self) -> Array:
        """Which are no changes of rows."""
        return np.flatnonzero(~_IS_CHANGE[self.tags])

    def stretches(self) -> Iterator[Array | Whole]:
        """All that is rare, in order: messages to be looked at one by one, and whole transactions."""
        rare = self.rare
        opens = self._opens()
        done = 0
        # Where one of them does not follow the one before it.
        cuts = np.flatnonzero(~self._continues(opens)[1:]) + 1
        for part in np.split(opens, cuts):
            if len(part) >= TOGETHER_MIN:
                if done < part[0]:
                    yield rare[done : part[0]]
                yield self._whole(rare[part], rare[part + 1])
                done = int(part[-1]) + 2
        if done < len(rare):
            yield rare[done:]

    def _opens(self) -> Array:
        """Which of the rare messages begin a transaction that the next rare one commits."""
        rare, tags = self.rare, self.tags[self.rare]
        opens = np.flatnonzero((tags[:-1] == BEGIN) & (tags[1:] == COMMIT))
        is_long = (self.lengths[rare[opens]] == BEGIN_BYTES) & (self.lengths[rare[opens + 1]] == COMMIT_BYTES)
        opens = opens[is_long]
        is_same = self.uint64(rare[opens], _FINAL_LSN_AT) == self.uint64(rare[opens + 1], _COMMIT_LSN_AT)
        found: Array = opens[is_same & (self.uint32(rare[opens], _XID_AT) > 0)]
        return found

    def _continues(self, opens: Array) -> Array:
        """Whether each of these transactions comes right after the one before it, and commits later."""
        begins, commits = self.rare[opens], self.rare[opens + 1]
        lsns = self.uint64(begins, _FINAL_LSN_AT)
        continues = np.zeros(len(opens), np.bool_)
        continues[1:] = (begins[1:] == commits[:-1] + 1) & (lsns[1:] > lsns[:-1])
        return continues

    def _whole(self, begins: Array, commits: Array) -> Whole:
        first, last = self.uint64(begins[[0, -1]], _FINAL_LSN_AT).tolist()
        xids = np.repeat(self.uint32(begins, _XID_AT), commits - begins + 1)
        return Whole(int(begins[0]), int(commits[-1]) + 1, first, last, xids)

    def lsn(self, rows: Array) -> Array:
        return self.uint64(rows, 1)

    def uint64(self, rows: Array, offset: int) -> Array:
        found: Array = self.numbers(">u8")[self.starts[rows] + offset]
        return found

    def uint32(self, rows: Array, offset: int) -> Array:
        found: Array = self.numbers(">u4")[self.starts[rows] + offset]
        return found

    def numbers(self, dtype: str) -> Array:
        """A view whose elements overlap: element i is the number whose first byte is byte i."""
        count = max(0, len(self.data) - np.dtype(dtype).itemsize + 1)
        return np.ndarray((count,), dtype=dtype, buffer=self.data, strides=(1,))


def lsn_of(message: bytes) -> int:
    """The LSN in the header of one message."""
    lsn: int = _LSN.unpack_from(message)[0]
    return lsn
