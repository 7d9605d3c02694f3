"""The replication stream as log records.

Pure: raw CopyData messages in, a batch of log records out. Changes of rows pass through as they are; only the rare
messages are looked into. A transaction comes in one of three ways:

    B … C              whole, when it has committed
    S … E  S … E  c    streamed, in parts among those of others, while it is open; `A` takes it back, or a part of it
    b … P  …  K        when it is prepared, and its end later; `p` where it was streamed before; `r` takes it back

A transaction whose commit the log already has is left out whole, so a server that sends again from an older position
adds nothing. Of a streamed one that is known only at its commit: then it is rolled back in the log.

A shape that an open transaction announces may come from a change of its own that no other session can see yet. Then its
SCHEMA record only says where the shape begins, and the catalog is asked again when the transaction has committed. For
the server, what it sent with a prepared transaction is known to all others, whether that one commits or not.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from tailrace.errors import GapError
from tailrace.model.commit import Commit
from tailrace.model.kind import Kind
from tailrace.model.table import TableSchema
from tailrace.source.postgres.server.history import FIRST, History
from tailrace.source.postgres.server.lsn import Lsn
from tailrace.source.postgres.server.timeline import REPAIR
from tailrace.source.postgres.stream._announced_shapes import Described
from tailrace.source.postgres.stream._heads import BEGIN, COMMIT, HEADER_BYTES, Whole
from tailrace.source.postgres.stream._inbox import Messages
from tailrace.source.postgres.stream._records import RecordList
from tailrace.source.postgres.stream._replay import Replay
from tailrace.source.postgres.values.messages import (
    POSTGRES_EPOCH_US,
    Ended,
    Prepared,
    Relation,
    check_origin,
    check_type,
    malformed,
    parse_begin_prepare,
    parse_commit_prepared,
    parse_message,
    parse_prepare,
    parse_relation,
    parse_rollback_prepared,
    parse_stream_abort,
    parse_stream_commit,
    parse_stream_start,
    parse_truncate,
    without_xid,
)

_LSN = struct.Struct(">xQ")
_BEGIN = struct.Struct(f">xQ{HEADER_BYTES - 8}xQ8xI")
_COMMIT = struct.Struct(f">xQ{HEADER_BYTES - 8}xBQQq")
"""With the header in front."""
_COMMIT_RECORD = struct.Struct(">QQq")


@dataclass(frozen=True)
class Known:
    """What the log has where the stream begins."""

    last_commit_ordinal: int = 0
    prepared: Mapping[int, int] = field(default_factory=dict)
    """Transactions that are prepared, and where."""
    received_ordinal: int = 0
    """Messages that belong to no transaction are in the log up to here."""
    replay: Replay = field(default_factory=Replay)
    history: History = FIRST
    """What ordinals are of. The others here are LSNs of it."""


class StreamEncoder:
    """Turns messages into records. Remembers open transactions between two calls: of each streamed one the shapes that
    it announced, never its changes."""

    _encoding, is_done = "utf-8", False
    """What names are written in, and whether it takes no more."""

    def __init__(self, known: Known, describe: Callable[[Relation], Described]) -> None:
        self._last_commit_ordinal = known.last_commit_ordinal
        self._prepared = dict(known.prepared)
        self._received_ordinal = known.received_ordinal
        self.replay = known.replay
        self._history = known.history
        self._describe = describe
        self._streamed: dict[int, list[tuple[int, Relation]]] = {}
        """The open streamed transactions, and which shapes each announced that are not settled."""
        self._announced = 0
        """How many shapes were announced. Such a message has no LSN, so its number tells the record."""
        self._unlogged: dict[int, Relation] = {}
        """Shapes that only transactions announced which the log has: the server sends a shape once."""
        self._directly: Relation | None = None
        """The table that was announced last, where nothing but that has come since."""
        self._held: tuple[Relation, int] | None = None
        """A table that was announced directly after another one, and in which sub-transaction. The next change tells
        whether it is a partition of that one: those of a partition come under the number of its table."""
        self._block = ("", 0, 0)
        """How it began, its transaction, where that commits or is prepared."""
        self._xid, self._is_streamed, self._is_skipped = 0, False, False

    @property
    def has_open_streams(self) -> bool:
        """Whether a transaction is in the log of which the server has more to send."""
        return bool(self._streamed)

    def encode(self, messages: Messages) -> pa.RecordBatch:
        """The records of `messages`, in order. Uses them up."""
        self._records = RecordList(messages, self._history)
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
        is_new = whole.first_commit > self._last_commit_ordinal
        if self._xid or self._unlogged or self.replay.is_awaited or not is_new:
            rare = self._records.heads.rare
            first, last = np.searchsorted(rare, (whole.start, whole.stop))
            return self._take_rare(rare[first:last].tolist(), whole.start)
        self._records.add_whole(whole)
        self._last_commit_ordinal = whole.last_commit
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
        if start == stop or (self._is_skipped and self._directly is None):
            return
        if not self._xid:
            raise malformed("row")
        if self._directly is not None:
            self._release(self._records.relation_of(start, self._is_streamed))
        if not self._is_skipped:
            self._records.add_changes(start, stop, self._xid, self._is_streamed)

    def _take(self, tag: str, message: bytes) -> None:
        payload = message[HEADER_BYTES:]
        if tag not in "RYk" and self._directly is not None:
            self._release()
        match tag:
            case "k":
                if not self._xid:
                    # Inside a block a keepalive says nothing about what has been received whole.
                    lsn = _lsn(message)
                    # The transaction that commits there comes next, if there is one.
                    self.replay.passed(lsn - 1)
                    self._records.add(lsn, 0, Kind.KEEPALIVE)
            case "R" | "T" | "M" | "Y" | "O":
                self._take_inside(tag, message, payload)
            case "S" | "E" | "c" | "A":
                self._take_stream(tag, message, payload)
            case "b" | "P" | "p" | "K" | "r":
                self._take_prepared(tag, message, payload)
            case _:
                raise malformed(tag if tag.isprintable() else f"{ord(tag):#x}")

    def _take_inside(self, tag: str, message: bytes, payload: bytes) -> None:
        """What tells of tables, or of the transaction at hand."""
        sub_xid = 0
        if self._is_streamed and tag != "O":
            sub_xid, payload = without_xid(payload)
            sub_xid = 0 if sub_xid == self._xid else sub_xid
        if not self._xid and tag != "M":
            raise malformed(tag)
        match tag:
            case "R":
                self._announce(parse_relation(payload, self._encoding), sub_xid)
            case "T":
                for relation in parse_truncate(payload).relations:
                    self._add(message, Kind.TRUNCATE, payload, relation, sub_xid)
            case "M":
                self._take_message(message, payload, sub_xid)
            case "Y":
                check_type(payload)
            case "O":
                check_origin(payload)

    def _take_stream(self, tag: str, message: bytes, payload: bytes) -> None:
        match tag:
            case "S":
                xid, is_first = parse_stream_start(payload)
                self._enter_block(tag, xid)
                if is_first:
                    self._streamed[xid] = []
                    self._begin(message)
                elif xid not in self._streamed:
                    raise malformed(tag)
            case "E":
                if not self._is_streamed or len(payload) > 1:
                    raise malformed(tag)
                self._leave_block()
            case "c":
                xid, commit = parse_stream_commit(payload)
                self.replay.committed(commit.position.ordinal, commit.position.time_us)
                self._complete(xid, tag)
                self._end(message, xid, commit)
            case "A":
                self._abort(message, *parse_stream_abort(payload))

    def _take_prepared(self, tag: str, message: bytes, payload: bytes) -> None:
        match tag:
            case "b":
                lsn, xid, _ = parse_begin_prepare(payload)
                self._enter_block(tag, xid, lsn, is_skipped=self._prepared.get(xid) == lsn)
                self._begin(message)
            case "P":
                prepared = parse_prepare(payload)
                if self._block != ("b", prepared.xid, prepared.lsn):
                    raise malformed(tag)
                self._prepare(message, prepared)
                self._leave_block()
            case "p":
                prepared = parse_prepare(payload, tag)
                self._complete(prepared.xid, tag)
                self._prepare(message, prepared)
            case "K":
                self._end_prepared(message, parse_commit_prepared(payload))
            case "r":
                self._end_prepared(message, parse_rollback_prepared(payload))

    def _enter_block(self, tag: str, xid: int, lsn: int = 0, *, is_skipped: bool = False) -> None:
        if self._xid or not xid:
            raise malformed(tag)
        self._block = (tag, xid, lsn)
        self._xid, self._is_streamed, self._is_skipped = xid, tag == "S", is_skipped

    def _leave_block(self) -> None:
        self._block = ("", 0, 0)
        self._xid, self._is_streamed, self._is_skipped = 0, False, False

    def _begin(self, message: bytes) -> None:
        if self._is_skipped:
            return
        for relation in self._unlogged.values():
            described = self._describe(replace(relation, filled_by=0))
            self._records.add(0, 0, Kind.SCHEMA, described.schema.to_json(), relation.oid)
        self._unlogged = {}
        self._add(message, Kind.BEGIN)

    def _begin_whole(self, message: bytes) -> None:
        if len(message) != _BEGIN.size:
            raise malformed("B")
        lsn, final_lsn, xid = _BEGIN.unpack(message)
        self._enter_block("B", xid, final_lsn, is_skipped=final_lsn <= self._last_commit_ordinal)
        if self._unlogged:
            self._begin(message)
        elif not self._is_skipped:
            self._records.add(lsn, xid, Kind.BEGIN)

    def _commit_whole(self, message: bytes) -> None:
        if len(message) != _COMMIT.size:
            raise malformed("C")
        if self._directly is not None:
            self._release()
        lsn, _, commit_lsn, end_lsn, time = _COMMIT.unpack(message)
        if self._block != ("B", self._xid, commit_lsn):
            raise malformed("C")
        self.replay.committed(commit_lsn, time + POSTGRES_EPOCH_US)
        if not self._is_skipped:
            ordinals = self._history.ordinal(commit_lsn), self._history.ordinal(end_lsn)
            payload = _COMMIT_RECORD.pack(*ordinals, time + POSTGRES_EPOCH_US)
            self._records.add(lsn, self._xid, Kind.COMMIT, payload)
            self._last_commit_ordinal = commit_lsn
        self._leave_block()

    def _end(self, message: bytes, xid: int, commit: Commit | None) -> None:
        """The end of a transaction that was logged before it. What the log has under its commit already is void."""
        if commit is None or commit.position.ordinal <= self._last_commit_ordinal:
            self._records.add(_lsn(message), xid, Kind.ROLLBACK)
        else:
            at = replace(commit.position, ordinal=self._history.ordinal(commit.position.ordinal))
            logged = Commit(at, self._history.ordinal(commit.end_ordinal))
            self._records.add(_lsn(message), xid, Kind.COMMIT, logged.to_bytes())
            self._last_commit_ordinal = commit.position.ordinal

    def _abort(self, message: bytes, xid: int, sub_xid: int) -> None:
        """Of a transaction that is not known, nothing has to be taken back."""
        if self._xid:
            raise malformed("A")
        if xid not in self._streamed:
            return
        if xid == sub_xid:
            del self._streamed[xid]
            self._records.add(_lsn(message), xid, Kind.ROLLBACK)
        else:
            self._records.add(_lsn(message), xid, Kind.ROLLBACK_SUB, sub_xid=sub_xid)

    def _prepare(self, message: bytes, prepared: Prepared) -> None:
        if not self._is_skipped:
            self._records.add(prepared.lsn, prepared.xid, Kind.PREPARE, prepared.gid.encode())
            self._prepared[prepared.xid] = prepared.lsn

    def _end_prepared(self, message: bytes, ended: Ended) -> None:
        if self._xid:
            raise malformed("K")
        if ended.commit is not None:
            self.replay.committed(ended.commit.position.ordinal, ended.commit.position.time_us)
        if self._prepared.pop(ended.xid, None) is not None:
            self._end(message, ended.xid, ended.commit)
        elif ended.commit is not None and ended.commit.position.ordinal > self._last_commit_ordinal:
            where = Lsn(ended.commit.position.ordinal)
            raise GapError(
                f"the transaction that was committed at {where} was prepared before, and the log lacks what it changed",
                REPAIR,
            )

    def _announce(self, relation: Relation, sub_xid: int) -> None:
        root = self._directly
        self._release()
        self._directly = relation
        if root is None:
            self._describe_in(relation, sub_xid)
        else:
            self._held = replace(relation, part_of=root.oid, filled_by=self._xid), sub_xid

    def _release(self, changed: int = 0) -> None:
        """Log what was held back, now that the next message is there: a change of the table with this number, if any is
        one."""
        held, self._directly, self._held = self._held, None, None
        if held is not None:
            relation, sub_xid = held
            is_part = relation.part_of == changed
            self._describe_in(relation if is_part else replace(relation, part_of=0), sub_xid)

    def _describe_in(self, relation: Relation, sub_xid: int) -> None:
        self._announced += 1
        if self._is_skipped:
            self._unlogged[relation.oid] = relation
            return
        described = self._describe(relation)
        schema, xid = described.schema, self._xid
        if self._is_streamed and not described.is_settled:
            self._streamed[xid].append((self._announced, relation))
            # Without columns nothing can be decoded by it, should it stay as it is.
            schema = TableSchema(schema.table, relation.oid, (), (), {"announced": self._announced})
        elif self._block[0] == "b" and described.is_settled:
            xid, sub_xid = 0, 0
        self._records.add(self._announced, xid, Kind.SCHEMA, schema.to_json(), relation.oid, sub_xid)

    def _complete(self, xid: int, tag: str) -> None:
        """The shapes of a streamed transaction, now that the catalog can show them; it is no longer open."""
        if self._xid or xid not in self._streamed:
            raise malformed(tag)
        for number, relation in self._streamed.pop(xid):
            self._records.add(number, xid, Kind.SHAPE, self._describe(relation).schema.to_json(), relation.oid)

    def _take_message(self, message: bytes, payload: bytes, sub_xid: int) -> None:
        found = parse_message(payload)
        if found.is_transactional:
            if not self._xid:
                raise malformed("M")
            self._add(message, Kind.MESSAGE, payload, sub_xid=sub_xid)
            return
        if found.lsn < self._received_ordinal:
            return
        self._records.add(found.lsn, 0, Kind.MESSAGE, payload)
        if not self._xid:
            # All that committed before has been sent. From just after its start on, the message is not sent again.
            self._records.add(found.lsn + 1, 0, Kind.KEEPALIVE)

    def _add(self, message: bytes, kind: Kind, payload: bytes = b"", relation: int = 0, sub_xid: int = 0) -> None:
        if not self._is_skipped:
            self._records.add(_lsn(message), self._xid, kind, payload, relation, sub_xid)


def _lsn(message: bytes) -> int:
    lsn: int = _LSN.unpack_from(message)[0]
    return lsn
