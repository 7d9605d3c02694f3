"""One transaction that the server cannot send, stepped over: what it changed is not logged, only which tables.

A server prints every value before it sends it. Of some values it cannot: a `bytea` of more than 512 MB has a text of
more than 1 GB, and in some encodings there are bytes that no other encoding has. Then the server ends the stream, and
would end it again at the same transaction for ever, for all tables. So we ask for that transaction alone in binary and
in the server's own encoding, which leave the values as they are. We cannot read them. For each table that it changed,
the log gets a record that says so (`Kind.UNSENT`): whoever comes to decode it has the table copied again.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import psycopg
import pyarrow as pa

from tailrace.errors import TransientError
from tailrace.model.kind import Kind
from tailrace.source.postgres.server.lsn import Lsn
from tailrace.source.postgres.stream.encoding.announced_shapes import Described
from tailrace.source.postgres.stream.encoding.commits import Known
from tailrace.source.postgres.stream.encoding.encoder import StreamEncoder
from tailrace.source.postgres.stream.encoding.heads import AFTER_TAG, HEADER_BYTES, Whole
from tailrace.source.postgres.stream.inbox import Messages
from tailrace.source.postgres.values.messages import Relation

ROW_BYTES_MAX = 1 << 16
"""Longer messages are read only as far as they tell which table they are of."""
_CHANGES = b"IUD"
_NO_ENCODING = "SQL_ASCII"


class UnsentError(TransientError):
    """The server cannot send the next transaction as text."""


def take_values_as_they_are(conn: psycopg.Connection) -> str:
    """Have the server convert no text from now on. The Python name of what names are then written in."""
    encoding = conn.info.parameter_status("server_encoding") or _NO_ENCODING
    conn.pgconn.exec_(f"set client_encoding = '{encoding}'".encode())
    return "utf-8" if encoding == _NO_ENCODING else conn.info.encoding


def shortened(message: bytes) -> bytes:
    """A message without the values of a very long row: nothing reads them."""
    is_long_row = len(message) > ROW_BYTES_MAX and message[HEADER_BYTES] in _CHANGES
    return message[:ROW_BYTES_MAX] if is_long_row else message


class SteppingEncoder(StreamEncoder):
    """Takes the first transaction that the log lacks, and nothing after it. None may come while it is open."""

    def __init__(
        self, known: Known, describe: Callable[[Relation], Described], reason: str, encoding: str = "utf-8"
    ) -> None:
        super().__init__(known, describe, encoding)
        self.is_done = False
        self._reason = reason
        self._changed: set[int] = set()

    def encode(self, messages: Messages) -> pa.RecordBatch:
        """The records of `messages` up to the end of that transaction."""
        return super().encode(messages)

    def _take_whole(self, whole: Whole, done: int) -> int:
        rare = self._records.heads.rare
        first, last = np.searchsorted(rare, (whole.start, whole.stop))
        return self._take_rare(rare[first:last].tolist(), done)

    def _take_changes(self, start: int, stop: int) -> None:
        if self.is_done or start == stop:
            return
        relations = self._records.heads.uint32(np.arange(start, stop), AFTER_TAG)
        if self._shapes.is_waiting:
            self._shapes.release(self._block, self._records, int(relations[0]))
        if not self._block.is_skipped:
            self._changed.update(np.unique(relations).tolist())

    def _begin_whole(self, message: bytes) -> None:
        if not self.is_done:
            super()._begin_whole(message)

    def _commit_whole(self, message: bytes) -> None:
        if self.is_done:
            return
        is_new = not self._block.is_skipped
        self._tell_unsent(self._block.lsn)
        super()._commit_whole(message)
        self.is_done = is_new

    def _take(self, tag: str, message: bytes) -> None:
        if self.is_done:
            return
        is_new = tag == "P" and not self._block.is_skipped
        if tag == "P":
            # Shapes come before what says that they were used.
            self._shapes.release(self._block, self._records)
            self._tell_unsent(self._block.lsn)
        super()._take(tag, message)
        self.is_done = is_new

    def _tell_unsent(self, lsn: int) -> None:
        reason = f"the server cannot send what the transaction at {Lsn(lsn)} changed: {self._reason}"
        for relation in sorted(self._changed):
            self._records.add(lsn, self._block.xid, Kind.UNSENT, reason.encode(), relation)
        self._changed.clear()
