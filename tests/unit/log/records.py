"""Records for tests, written by hand: `change(7, relation=1, payload=b"a")`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from tailrace.log.disk import Disk
from tailrace.log.playback import read
from tailrace.log.reader import LogReader
from tailrace.log.record import RECORD
from tailrace.log.writer import DEFAULTS, LogOptions, LogWriter
from tailrace.model.commit import CommitPayload
from tailrace.model.kind import Kind
from tailrace.model.lsn import Lsn
from tailrace.model.table import Column, TableId, TableSchema


class UnsyncedDisk(Disk):
    """A disk that does not wait: a test that survives no power cut needs no sync."""

    def sync(self, descriptor: int) -> None:
        pass

    def sync_directory(self, path: Path) -> None:
        pass


def open_log(path: Path, options: LogOptions = DEFAULTS, clock: Callable[[], int] | None = None) -> LogWriter:
    return LogWriter.open(path, IDENTITY, options, UnsyncedDisk(), clock)


IDENTITY = {"source": "postgres", "system_identifier": "7", "database": "shop"}


@dataclass(frozen=True)
class Record:
    kind: Kind
    xid: int = 0
    sub_xid: int = 0
    relation: int = 0
    payload: bytes = b""
    lsn: int = 0


def begin(xid: int) -> Record:
    return Record(Kind.BEGIN, xid)


def commit(xid: int, lsn: int, time_us: int = 0) -> Record:
    return Record(Kind.COMMIT, xid, payload=CommitPayload(Lsn(lsn), Lsn(lsn + 8), time_us).to_bytes(), lsn=lsn)


def rollback(xid: int) -> Record:
    return Record(Kind.ROLLBACK, xid)


def rollback_sub(xid: int, sub_xid: int) -> Record:
    return Record(Kind.ROLLBACK_SUB, xid, sub_xid)


def undo(xid: int, relation: int, sub_xid: int = 0) -> Record:
    return Record(Kind.UNDO, xid, sub_xid, relation)


def change(xid: int, payload: bytes, relation: int = 1, sub_xid: int = 0, kind: Kind = Kind.INSERT) -> Record:
    return Record(kind, xid, sub_xid, relation, payload)


def keepalive(lsn: int) -> Record:
    return Record(Kind.KEEPALIVE, lsn=lsn)


def schema(relation: int, *names: str, xid: int = 0) -> Record:
    columns = tuple(Column(name, "int", "integer") for name in names)
    shape = TableSchema(TableId("public", f"t{relation}"), relation, columns, names[:1])
    return Record(Kind.SCHEMA, xid, relation=relation, payload=shape.to_json())


def transaction(xid: int, lsn: int, *payloads: bytes, relation: int = 1, time_us: int = 0) -> list[Record]:
    changes = [change(xid, payload, relation) for payload in payloads]
    return [begin(xid), *changes, commit(xid, lsn, time_us)]


def batch(records: list[Record]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([vars(record) for record in records], schema=RECORD)


def played(
    path: Path, after: int = 0, upto: int | None = None, relations: set[int] | None = None, bytes_max: int = 1 << 20
) -> list[tuple[int, bytes]]:
    """(seq, payload) of every change that playback gives, over all pieces."""
    reader = LogReader(path)
    upto = reader.head.seq if upto is None else upto
    found = []
    for piece in reader.ranges(after, upto, bytes_max, relations):
        for rows in read(path, piece, after, upto, relations):
            found += list(zip(rows["seq"].to_pylist(), rows["payload"].to_pylist(), strict=True))
    return found


def by_transaction(found: list[tuple[int, bytes]]) -> dict[int, list[bytes]]:
    grouped: dict[int, list[bytes]] = {}
    for seq, payload in found:
        grouped.setdefault(seq, []).append(payload)
    return grouped
