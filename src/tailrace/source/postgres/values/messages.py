"""pgoutput messages that are rare enough for plain Python: all but the changes of rows.

Between the start and the stop of a streamed block, a message about a table has the number of its sub-transaction after
its first byte. `parse_…` expects messages without it; `without_xid` takes it out.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, NamedTuple

from tailrace.errors import DefiniteError
from tailrace.model.commit import Commit
from tailrace.model.position import SourcePosition
from tailrace.source.postgres.server.lsn import Lsn

POSTGRES_EPOCH_US = 946_684_800_000_000
"""2000-01-01 UTC, where Postgres starts counting, in Unix microseconds."""

_COMMIT = struct.Struct(">xBQQq")
_STREAM_START = struct.Struct(">xIB")
_STREAM_COMMIT = struct.Struct(">xIBQQq")
_STREAM_ABORT = struct.Struct(">xII")
_STREAM_ABORT_TIMED = struct.Struct(">xIIQq")
_XID = struct.Struct(">xI")


class StreamAbort(NamedTuple):
    xid: int
    sub_xid: int
    """The transaction itself where it is all of it."""


class PreparedMessage(NamedTuple):
    """A transaction that is prepared, or about to be, at `lsn`."""

    lsn: Lsn
    xid: int
    gid: str


class EndedPrepared(NamedTuple):
    """A prepared transaction that was committed, or rolled back where there is no commit."""

    xid: int
    commit: Commit | None


class LogicalMessage(NamedTuple):
    """A logical message, as `pg_logical_emit_message` makes it."""

    is_transactional: bool
    lsn: Lsn
    prefix: str
    content: bytes


@dataclass(frozen=True)
class RelationColumn:
    is_key: bool
    """Part of the replica identity. Under identity full every column is."""
    name: str
    type_oid: int
    typmod: int


@dataclass(frozen=True)
class Relation:
    oid: int
    namespace: str
    name: str
    replica_identity: str
    """`d` default, `n` nothing, `f` full, `i` index."""
    columns: tuple[RelationColumn, ...]
    part_of: int = 0
    """The table under whose number its changes are sent, where the stream has shown that; else 0."""
    filled_by: int = 0
    """Of a part: the transaction whose change that is; 0 if the log has that transaction already."""
    committed_by: int = 0
    """The transaction that announced it, if that has committed; else 0."""


@dataclass(frozen=True)
class Truncate:
    relations: tuple[int, ...]
    cascade: bool
    restart: bool


def parse_commit(payload: bytes) -> Commit:
    _, commit_lsn, end_lsn, time = _unpack(_COMMIT, payload, "C")
    return _commit(commit_lsn, end_lsn, time)


def parse_stream_start(payload: bytes) -> tuple[int, bool]:
    """Which open transaction the following is a part of, up to the stream's stop; whether this is its first part."""
    xid, is_first = _unpack(_STREAM_START, payload, "S")
    return xid, bool(is_first)


def parse_stream_commit(payload: bytes) -> tuple[int, Commit]:
    """The transaction and its commit."""
    xid, _, commit_lsn, end_lsn, time = _unpack(_STREAM_COMMIT, payload, "c")
    return xid, _commit(commit_lsn, end_lsn, time)


def parse_stream_abort(payload: bytes) -> StreamAbort:
    """With or without the place and the time of the abort, which a server sends to those who apply in parallel."""
    layout = _STREAM_ABORT if len(payload) == _STREAM_ABORT.size else _STREAM_ABORT_TIMED
    return StreamAbort(*_unpack(layout, payload, "A")[:2])


def parse_begin_prepare(payload: bytes) -> PreparedMessage:
    reader = _Reader(payload, "b")
    lsn, _, _, xid = reader.take(">QQqI")
    return PreparedMessage(Lsn(lsn), xid, reader.last_text())


def parse_prepare(payload: bytes, message: str = "P") -> PreparedMessage:
    """Of a transaction that was sent when it was prepared; with `p`, of one that was streamed."""
    reader = _Reader(payload, message)
    _, lsn, _, _, xid = reader.take(">BQQqI")
    return PreparedMessage(Lsn(lsn), xid, reader.last_text())


def parse_commit_prepared(payload: bytes) -> EndedPrepared:
    reader = _Reader(payload, "K")
    _, commit_lsn, end_lsn, time, xid = reader.take(">BQQqI")
    reader.last_text()
    return EndedPrepared(xid, _commit(commit_lsn, end_lsn, time))


def parse_rollback_prepared(payload: bytes) -> EndedPrepared:
    reader = _Reader(payload, "r")
    *_, xid = reader.take(">BQQqqI")
    reader.last_text()
    return EndedPrepared(xid, None)


def parse_message(payload: bytes) -> LogicalMessage:
    reader = _Reader(payload, "M")
    flags, lsn = reader.take(">BQ")
    prefix = reader.text()
    (length,) = reader.take(">I")
    return LogicalMessage(bool(flags & 1), Lsn(lsn), prefix, reader.rest(length))


def parse_relation(payload: bytes, encoding: str = "utf-8") -> Relation:
    reader = _Reader(payload, "R", encoding)
    (oid,) = reader.take(">I")
    namespace, name = reader.text() or "pg_catalog", reader.text()
    identity, count = reader.take(">cH")
    if identity not in (b"d", b"n", b"f", b"i"):
        raise malformed("R")
    columns = tuple(_relation_column(reader) for _ in range(count))
    reader.finish()
    return Relation(oid, namespace, name, identity.decode("ascii"), columns)


def parse_truncate(payload: bytes) -> Truncate:
    reader = _Reader(payload, "T")
    count, options = reader.take(">IB")
    relations = tuple(reader.take(f">{count}I"))
    reader.finish()
    return Truncate(relations, cascade=bool(options & 1), restart=bool(options & 2))


def check_origin(payload: bytes) -> None:
    """A definite error unless it names an origin. Nothing of it is kept."""
    reader = _Reader(payload, "O")
    reader.take(">Q")
    reader.last_text()


def check_type(payload: bytes) -> None:
    """A definite error unless it names a type. The catalog is asked instead."""
    reader = _Reader(payload, "Y")
    reader.take(">I")
    reader.text()
    reader.last_text()


def without_xid(payload: bytes) -> tuple[int, bytes]:
    """The sub-transaction of a message in a streamed block, and the message as it is elsewhere."""
    if len(payload) < _XID.size:
        raise malformed(chr(payload[0]))
    return _XID.unpack_from(payload)[0], payload[:1] + payload[_XID.size :]


def malformed(message: str) -> DefiniteError:
    return DefiniteError(
        f"the server sent a {message!r} message that is not in pgoutput's format, or not where it may stand",
        "is the slot's plugin pgoutput, of an unchanged Postgres? nothing of the message was taken",
    )


def _commit(commit_lsn: int, end_lsn: int, time: int) -> Commit:
    return Commit(SourcePosition(commit_lsn, time + POSTGRES_EPOCH_US), end_lsn)


def _unpack(layout: struct.Struct, payload: bytes, message: str) -> tuple[Any, ...]:
    if len(payload) != layout.size or payload[0] != ord(message):
        raise malformed(message)
    return layout.unpack(payload)


def _relation_column(reader: _Reader) -> RelationColumn:
    (flags,) = reader.take(">B")
    name = reader.text()
    type_oid, typmod = reader.take(">Ii")
    return RelationColumn(bool(flags & 1), name, type_oid, typmod)


class _Reader:
    """Reads a message front to back. Bytes that are missing or left over are a definite error."""

    def __init__(self, payload: bytes, message: str, encoding: str = "utf-8") -> None:
        self._payload = payload
        self._encoding = encoding
        self._message = message
        self._at = 1
        if payload[:1] != message.encode():
            raise malformed(message)

    def take(self, layout: str) -> tuple[Any, ...]:
        try:
            fields = struct.unpack_from(layout, self._payload, self._at)
        except (struct.error, OverflowError, MemoryError):
            raise malformed(self._message) from None
        self._at += struct.calcsize(layout)
        return fields

    def text(self) -> str:
        end = self._payload.find(b"\0", self._at)
        if end < 0:
            raise malformed(self._message)
        # A database without an encoding has names of any bytes. One that is not UTF-8 is no reason to stop the stream.
        text = self._payload[self._at : end].decode(self._encoding, "backslashreplace")
        self._at = end + 1
        return text

    def last_text(self) -> str:
        text = self.text()
        self.finish()
        return text

    def rest(self, length: int) -> bytes:
        """All that is left, which must be so long."""
        if len(self._payload) - self._at != length:
            raise malformed(self._message)
        return self._payload[self._at :]

    def finish(self) -> None:
        if self._at != len(self._payload):
            raise malformed(self._message)
