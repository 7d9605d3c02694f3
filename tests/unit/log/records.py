"""Records for tests, written by hand: `change(7, relation=1, payload=b"a")`."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import pyarrow as pa

from tailrace.log.files.disk import LogDisk
from tailrace.log.files.record import RECORD
from tailrace.log.playback.play import read
from tailrace.log.reader import LogReader
from tailrace.log.write.writer import DEFAULTS, LogOptions, LogWriter
from tailrace.model.commit import Commit
from tailrace.model.kind import Kind
from tailrace.model.position import SourcePosition
from tailrace.model.table import Column, TableId, TableSchema

T = TypeVar("T")


class UnsyncedDisk(LogDisk):
    """A disk that does not wait: a test that survives no power cut needs no sync."""

    def sync(self, descriptor: int) -> None:
        pass

    def sync_directory(self, path: Path) -> None:
        pass


def open_log(path: Path, options: LogOptions = DEFAULTS, clock: Callable[[], int] | None = None) -> LogWriter:
    return LogWriter.open(path, IDENTITY, options, UnsyncedDisk(), clock)


IDENTITY = {"source": "test", "system_identifier": "7", "database": "shop"}


@dataclass(frozen=True)
class Record:
    kind: Kind
    xid: int = 0
    sub_xid: int = 0
    relation: int = 0
    payload: bytes = b""
    ordinal: int = 0


def begin(xid: int) -> Record:
    return Record(Kind.BEGIN, xid)


def commit(xid: int, ordinal: int, time_us: int = 0, detail: bytes = b"") -> Record:
    payload = Commit(SourcePosition(ordinal, time_us, detail), ordinal + 8).to_bytes()
    return Record(Kind.COMMIT, xid, payload=payload, ordinal=ordinal)


def rollback(xid: int) -> Record:
    return Record(Kind.ROLLBACK, xid)


def rollback_sub(xid: int, sub_xid: int) -> Record:
    return Record(Kind.ROLLBACK_SUB, xid, sub_xid)


def undo(xid: int, relation: int, sub_xid: int = 0) -> Record:
    return Record(Kind.UNDO, xid, sub_xid, relation)


def change(xid: int, payload: bytes, relation: int = 1, sub_xid: int = 0, kind: Kind = Kind.INSERT) -> Record:
    return Record(kind, xid, sub_xid, relation, payload)


def keepalive(ordinal: int, detail: bytes = b"") -> Record:
    return Record(Kind.KEEPALIVE, payload=detail, ordinal=ordinal)


def schema(relation: int, *names: str, xid: int = 0) -> Record:
    columns = tuple(Column(name, "int", "integer") for name in names)
    shape = TableSchema(TableId("public", f"t{relation}"), relation, columns, names[:1])
    return Record(Kind.SCHEMA, xid, relation=relation, payload=shape.to_json())


def transaction(
    xid: int, ordinal: int, *payloads: bytes, relation: int = 1, time_us: int = 0, detail: bytes = b""
) -> list[Record]:
    changes = [change(xid, payload, relation) for payload in payloads]
    return [begin(xid), *changes, commit(xid, ordinal, time_us, detail)]


def batch(records: list[Record]) -> pa.RecordBatch:
    columns = [pa.array([getattr(record, field.name) for record in records], field.type) for field in RECORD]
    return pa.RecordBatch.from_arrays(columns, schema=RECORD)


def in_memory() -> tempfile.TemporaryDirectory[str]:
    """A folder in memory where the system has one: a test without a real power cut needs no disk."""
    return tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)


def played(
    path: Path, after: int = 0, upto: int | None = None, relations: set[int] | None = None, bytes_max: int = 1 << 20
) -> list[tuple[int, bytes]]:
    """(seq, payload) of every change that playback gives, over all ranges."""
    reader = LogReader(path)
    upto = reader.head.seq if upto is None else upto
    found = []
    for part in reader.ranges(after, upto, bytes_max, relations):
        for rows in read(path, part, after, upto, relations):
            found += list(zip(rows["seq"].to_pylist(), rows["payload"].to_pylist(), strict=True))
    return found


def point(position: SourcePosition) -> tuple[int, int, bytes]:
    """All of it: positions are equal when their ordinals are."""
    return position.ordinal, position.time_us, position.detail


def sample(items: Sequence[T], every: int) -> Sequence[T]:
    """Every so many of them, from a random one on: each run takes others, the same for the same seed."""
    return items[random.randrange(every) :: every]


def by_transaction(found: list[tuple[int, bytes]]) -> dict[int, list[bytes]]:
    grouped: dict[int, list[bytes]] = {}
    for seq, payload in found:
        grouped.setdefault(seq, []).append(payload)
    return grouped
