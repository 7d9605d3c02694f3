"""pgoutput messages that are rare enough for plain Python: begin, commit, relation, truncate."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any, NamedTuple

from tailrace.errors import DefiniteError
from tailrace.model.commit import Commit
from tailrace.model.position import SourcePosition
from tailrace.source.postgres._lsn import Lsn

_POSTGRES_EPOCH_US = 946_684_800_000_000
"""2000-01-01 UTC, where Postgres starts counting, in Unix microseconds."""


class Begin(NamedTuple):
    final_lsn: Lsn
    """Where the transaction's commit record lies."""
    time_us: int
    """The commit time: microseconds since 1970-01-01 UTC."""
    xid: int


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


@dataclass(frozen=True)
class Truncate:
    relations: tuple[int, ...]
    cascade: bool
    restart: bool


def parse_begin(payload: bytes) -> Begin:
    reader = _Reader(payload, b"B")
    final_lsn, time, xid = reader.take(">QqI")
    reader.finish()
    return Begin(Lsn(final_lsn), time + _POSTGRES_EPOCH_US, xid)


def parse_commit(payload: bytes) -> Commit:
    reader = _Reader(payload, b"C")
    _, commit_lsn, end_lsn, time = reader.take(">BQQq")
    reader.finish()
    return Commit(SourcePosition(commit_lsn, time + _POSTGRES_EPOCH_US), end_lsn)


def parse_relation(payload: bytes) -> Relation:
    reader = _Reader(payload, b"R")
    (oid,) = reader.take(">I")
    namespace, name = reader.text() or "pg_catalog", reader.text()
    identity, count = reader.take(">cH")
    columns = tuple(_relation_column(reader) for _ in range(count))
    reader.finish()
    return Relation(oid, namespace, name, identity.decode("ascii"), columns)


def parse_truncate(payload: bytes) -> Truncate:
    reader = _Reader(payload, b"T")
    count, options = reader.take(">IB")
    relations = tuple(reader.take(f">{count}I"))
    reader.finish()
    return Truncate(relations, cascade=bool(options & 1), restart=bool(options & 2))


def _relation_column(reader: _Reader) -> RelationColumn:
    (flags,) = reader.take(">B")
    name = reader.text()
    type_oid, typmod = reader.take(">Ii")
    return RelationColumn(bool(flags & 1), name, type_oid, typmod)


class _Reader:
    """Reads a message front to back. Bytes that are missing or left over are a definite error."""

    def __init__(self, payload: bytes, message: bytes) -> None:
        self._payload = payload
        self._message = message
        self._at = 1
        if payload[:1] != message:
            raise self._malformed()

    def take(self, layout: str) -> tuple[Any, ...]:
        try:
            fields = struct.unpack_from(layout, self._payload, self._at)
        except struct.error:
            raise self._malformed() from None
        self._at += struct.calcsize(layout)
        return fields

    def text(self) -> str:
        end = self._payload.find(b"\0", self._at)
        if end < 0:
            raise self._malformed()
        text = self._payload[self._at : end].decode("utf-8")
        self._at = end + 1
        return text

    def finish(self) -> None:
        if self._at != len(self._payload):
            raise self._malformed()

    def _malformed(self) -> DefiniteError:
        return DefiniteError(
            f"the server sent a {self._message.decode()} message that is not in pgoutput's format",
            "is the slot's plugin pgoutput, and its protocol version 1?",
        )
