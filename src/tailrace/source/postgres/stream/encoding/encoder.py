"""The replication stream as log records.

Pure: raw CopyData messages in, a batch of log records out. Changes of rows pass through as they are; only the rare
messages are looked into. A transaction comes in one of three ways:

    B … C              whole, when it has committed
    S … E  S … E  c    streamed, in parts among those of others, while it is open; `A` takes it back, or a part of it
    b … P  …  K        when it is prepared, and its end later; `p` where it was streamed before; `r` takes it back

What the log has already is left out (`commits`). Transactions that are not whole are taken by `open_transactions`,
tables that are announced by `shape_records`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from tailrace.model.kind import Kind
from tailrace.source.postgres.stream.encoding.announced_shapes import Described
from tailrace.source.postgres.stream.encoding.commits import Commits, Known
from tailrace.source.postgres.stream.encoding.heads import BEGIN, COMMIT, HEADER_BYTES, Whole, lsn_of
from tailrace.source.postgres.stream.encoding.open_transactions import OpenTransactions
from tailrace.source.postgres.stream.encoding.records import RecordList
from tailrace.source.postgres.stream.encoding.replay import Replay
from tailrace.source.postgres.stream.encoding.shape_records import OUTSIDE, Block, ShapeRecords
from tailrace.source.postgres.stream.inbox import Messages
from tailrace.source.postgres.values.messages import (
    POSTGRES_EPOCH_US,
    Relation,
    check_origin,
    check_type,
    malformed,
    parse_message,
    parse_relation,
    parse_truncate,
    without_xid,
)

_BEGIN = struct.Struct(f">xQ{HEADER_BYTES - 8}xQ8xI")
_COMMIT = struct.Struct(f">xQ{HEADER_BYTES - 8}xBQQq")
"""With the header in front."""


class StreamEncoder:
    """Turns messages into records. Remembers open transactions between two calls, never their changes."""

    def __init__(self, known: Known, describe: Callable[[Relation], Described], encoding: str = "utf-8") -> None:
        """`encoding` is what names are written in."""
        self.is_done = False
        """It takes no more."""
        self._encoding = encoding
        self._received_ordinal = known.received_ordinal
        self._commits = Commits(known)
        self._shapes = ShapeRecords(describe)
        self._open = OpenTransactions(self._commits, self._shapes)
        self._block = OUTSIDE
        self._records = RecordList(Messages(), known.history)
        """Of the batch at hand."""

    @property
    def has_open_streams(self) -> bool:
        """Whether the log has a transaction that the server has not sent to its end."""
        return bool(self._shapes.open)

    @property
    def replay(self) -> Replay:
        return self._commits.replay

    def encode(self, messages: Messages) -> pa.RecordBatch:
        """The records of `messages`, in order. Uses them up."""
        self._records = RecordList(messages, self._commits.history)
        done = 0
        for stretch in self._records.heads.stretches():
            if isinstance(stretch, Whole):
                done = self._take_whole(stretch, done)
            else:
                done = self._take_rare(stretch.tolist(), done)
        self._take_changes(done, len(messages))
        return self._records.to_batch()

    def _take_whole(self, whole: Whole, done: int) -> int:
        """Transactions which nothing is to be asked about are taken together."""
        self._take_changes(done, whole.start)
        is_new = not self._commits.is_logged(whole.first_commit)
        if self._block.xid or self._shapes.unlogged or self.replay.is_awaited or not is_new:
            rare = self._records.heads.rare
            first, last = np.searchsorted(rare, (whole.start, whole.stop))
            return self._take_rare(rare[first:last].tolist(), whole.start)
        self._records.add_whole(whole)
        self._commits.logged_up_to(whole.last_commit)
        return whole.stop

    def _take_rare(self, rows: list[int], done: int) -> int:
        """These messages and the changes among them, one after the other; where the next one is."""
        heads = self._records.heads
        for row in rows:
            if done < row:
                self._take_changes(done, row)
            tag, message = heads.tags[row], heads.message(row)
            if tag == BEGIN:
                self._begin_whole(message)
            elif tag == COMMIT:
                self._commit_whole(message)
            else:
                self._take(chr(tag), message)
            done = row + 1
        return done

    def _take_changes(self, start: int, stop: int) -> None:
        block = self._block
        if start == stop or (block.is_skipped and not self._shapes.is_waiting):
            return
        if not block.xid:
            raise malformed("row")
        if self._shapes.is_waiting:
            self._shapes.release(block, self._records, self._records.relation_of(start, block.is_streamed))
        if not block.is_skipped:
            self._records.add_changes(start, stop, block.xid, block.is_streamed)

    def _take(self, tag: str, message: bytes) -> None:
        payload = message[HEADER_BYTES:]
        if tag not in "RYk" and self._shapes.is_waiting:
            self._shapes.release(self._block, self._records)
        match tag:
            case "k":
                if not self._block.xid:
                    # Inside a block a keepalive says nothing about what has been received whole.
                    lsn = lsn_of(message)
                    # The transaction that commits there comes next, if there is one.
                    self.replay.passed(lsn - 1)
                    self._records.add(lsn, 0, Kind.KEEPALIVE)
            case "R" | "T" | "M" | "Y" | "O":
                self._take_inside(tag, message, payload)
            case "S" | "E" | "c" | "A":
                self._block = self._open.take_streamed(tag, message, self._block, self._records)
            case "b" | "P" | "p" | "K" | "r":
                self._block = self._open.take_prepared(tag, message, self._block, self._records)
            case _:
                raise malformed(tag if tag.isprintable() else f"{ord(tag):#x}")

    def _take_inside(self, tag: str, message: bytes, payload: bytes) -> None:
        """What tells of tables, or of the transaction at hand."""
        block, sub_xid = self._block, 0
        if block.is_streamed and tag != "O":
            sub_xid, payload = without_xid(payload)
            sub_xid = 0 if sub_xid == block.xid else sub_xid
        if not block.xid and tag != "M":
            raise malformed(tag)
        match tag:
            case "R":
                self._shapes.announce(parse_relation(payload, self._encoding), sub_xid, block, self._records)
            case "T":
                for relation in parse_truncate(payload).relations:
                    self._add(message, Kind.TRUNCATE, payload, relation, sub_xid)
            case "M":
                self._take_message(message, payload, sub_xid)
            case "Y":
                check_type(payload)
            case "O":
                check_origin(payload)

    def _begin_whole(self, message: bytes) -> None:
        if len(message) != _BEGIN.size:
            raise malformed("B")
        lsn, final_lsn, xid = _BEGIN.unpack(message)
        self._block = self._block.enter(Block("B", xid, final_lsn, self._commits.is_logged(final_lsn)))
        self._shapes.begin(lsn, self._block, self._records)

    def _commit_whole(self, message: bytes) -> None:
        if len(message) != _COMMIT.size:
            raise malformed("C")
        if self._shapes.is_waiting:
            self._shapes.release(self._block, self._records)
        block = self._block
        lsn, _, commit_lsn, end_lsn, time = _COMMIT.unpack(message)
        if (block.tag, block.lsn) != ("B", commit_lsn):
            raise malformed("C")
        self.replay.committed(commit_lsn, time + POSTGRES_EPOCH_US)
        if not block.is_skipped:
            commit = commit_lsn, end_lsn, time + POSTGRES_EPOCH_US
            self._commits.commit_whole(lsn, block.xid, commit, self._records)
        self._block = OUTSIDE

    def _take_message(self, message: bytes, payload: bytes, sub_xid: int) -> None:
        parsed = parse_message(payload)
        if parsed.is_transactional:
            if not self._block.xid:
                raise malformed("M")
            self._add(message, Kind.MESSAGE, payload, sub_xid=sub_xid)
            return
        if parsed.lsn < self._received_ordinal:
            return
        self._records.add(parsed.lsn, 0, Kind.MESSAGE, payload)
        if not self._block.xid:
            # All that committed before has been sent. From just after its start on, the message is not sent again.
            self._records.add(parsed.lsn + 1, 0, Kind.KEEPALIVE)

    def _add(self, message: bytes, kind: Kind, payload: bytes = b"", relation: int = 0, sub_xid: int = 0) -> None:
        if not self._block.is_skipped:
            self._records.add(lsn_of(message), self._block.xid, kind, payload, relation, sub_xid)
