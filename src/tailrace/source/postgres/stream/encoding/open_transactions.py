"""Transactions that are logged before their end: streamed while they are open, or prepared."""

from __future__ import annotations

from tailrace.model.kind import Kind
from tailrace.source.postgres.stream.encoding.commits import Commits
from tailrace.source.postgres.stream.encoding.heads import HEADER_BYTES, lsn_of
from tailrace.source.postgres.stream.encoding.records import RecordList
from tailrace.source.postgres.stream.encoding.shape_records import OUTSIDE, Block, ShapeRecords
from tailrace.source.postgres.values.messages import (
    PreparedMessage,
    malformed,
    parse_begin_prepare,
    parse_commit_prepared,
    parse_prepare,
    parse_rollback_prepared,
    parse_stream_abort,
    parse_stream_commit,
    parse_stream_start,
)


class OpenTransactions:
    """Takes the messages of such transactions, and says which block is at hand then."""

    def __init__(self, commits: Commits, shapes: ShapeRecords) -> None:
        self._commits = commits
        self._shapes = shapes

    def take_streamed(self, tag: str, message: bytes, block: Block, records: RecordList) -> Block:
        payload = message[HEADER_BYTES:]
        match tag:
            case "S":
                return self._start(message, block, records)
            case "E":
                if not block.is_streamed or len(payload) > 1:
                    raise malformed(tag)
                return OUTSIDE
            case "c":
                xid, commit = parse_stream_commit(payload)
                self._commits.replay.committed(commit.position.ordinal, commit.position.time_us)
                self._complete(xid, tag, block, records)
                self._commits.end(lsn_of(message), xid, commit, records)
            case _:
                self._abort(message, block, records)
        return block

    def take_prepared(self, tag: str, message: bytes, block: Block, records: RecordList) -> Block:
        payload = message[HEADER_BYTES:]
        match tag:
            case "b":
                lsn, xid, _ = parse_begin_prepare(payload)
                entered = block.enter(Block(tag, xid, lsn, self._commits.is_prepared(xid, lsn)))
                self._shapes.begin(lsn_of(message), entered, records)
                return entered
            case "P":
                prepared = parse_prepare(payload)
                if (block.tag, block.xid, block.lsn) != ("b", prepared.xid, prepared.lsn):
                    raise malformed(tag)
                self._prepare(prepared, block, records)
                return OUTSIDE
            case "p":
                prepared = parse_prepare(payload, tag)
                self._complete(prepared.xid, tag, block, records)
                self._prepare(prepared, block, records)
            case _:
                if block.xid:
                    raise malformed(tag)
                ended = parse_commit_prepared(payload) if tag == "K" else parse_rollback_prepared(payload)
                self._commits.end_prepared(lsn_of(message), ended, records)
        return block

    def _start(self, message: bytes, block: Block, records: RecordList) -> Block:
        """A part of a streamed transaction: its first, or one more."""
        xid, is_first = parse_stream_start(message[HEADER_BYTES:])
        entered = block.enter(Block("S", xid))
        if is_first:
            self._shapes.open[xid] = []
            self._shapes.begin(lsn_of(message), entered, records)
        elif xid not in self._shapes.open:
            raise malformed("S")
        return entered

    def _abort(self, message: bytes, block: Block, records: RecordList) -> None:
        """Of a transaction that is not known, nothing has to be taken back."""
        xid, sub_xid = parse_stream_abort(message[HEADER_BYTES:])
        if block.xid:
            raise malformed("A")
        if xid not in self._shapes.open:
            return
        if xid == sub_xid:
            del self._shapes.open[xid]
            records.add(lsn_of(message), xid, Kind.ROLLBACK)
        else:
            records.add(lsn_of(message), xid, Kind.ROLLBACK_SUB, sub_xid=sub_xid)

    def _complete(self, xid: int, tag: str, block: Block, records: RecordList) -> None:
        """A streamed transaction is no longer open."""
        if block.xid or xid not in self._shapes.open:
            raise malformed(tag)
        self._shapes.complete(xid, records, is_committed=tag == "c")

    def _prepare(self, prepared: PreparedMessage, block: Block, records: RecordList) -> None:
        if not block.is_skipped:
            self._commits.prepare(prepared, records)
