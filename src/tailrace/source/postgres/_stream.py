"""The replication stream as log records.

Pure: raw CopyData messages in, a batch of log records out. Row changes pass through untouched;
only the rare messages are looked into. A transaction whose commit the log already has is left
out whole, so a server that sends again from an older position adds nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from tailrace.log.record import RECORD
from tailrace.model.kind import Kind
from tailrace.model.table import TableSchema
from tailrace.source.postgres._messages import Relation, parse_begin, parse_commit, parse_relation, parse_truncate

HEADER_BYTES = 25
"""`w`, the record's LSN, the server's WAL end, the clock; the pgoutput message follows."""

_CHANGES = {ord("I"): Kind.INSERT, ord("U"): Kind.UPDATE, ord("D"): Kind.DELETE}
_POSITIONS = struct.Struct(">xQ")
_RELATION = struct.Struct(f">{HEADER_BYTES + 1}xI")


class StreamEncoder:
    """Turns messages into records. Remembers the open transaction between two calls."""

    def __init__(self, last_commit_ordinal: int, describe: Callable[[Relation], TableSchema]) -> None:
        self._last_commit_ordinal = last_commit_ordinal
        self._describe = describe
        self._xid = 0
        self._skipping = False
        self._columns = _Columns()

    def encode(self, messages: Sequence[bytes]) -> pa.RecordBatch:
        """The records of `messages`, in order."""
        self._columns = columns = _Columns()
        for message in messages:
            tag = message[HEADER_BYTES] if message[0] == ord("w") else ord("k")
            kind = _CHANGES.get(tag)
            if kind is None:
                self._encode_rare(tag, message)
            elif not self._skipping:
                columns.ordinals.append(_POSITIONS.unpack_from(message)[0])
                columns.xids.append(self._xid)
                columns.kinds.append(kind)
                columns.relations.append(_RELATION.unpack_from(message)[0])
                columns.payloads.append(message[HEADER_BYTES:])
        return columns.to_batch()

    def _encode_rare(self, tag: int, message: bytes) -> None:
        lsn = _POSITIONS.unpack_from(message)[0]
        payload = message[HEADER_BYTES:]
        match chr(tag):
            case "B":
                final_lsn, _, self._xid = parse_begin(payload)
                self._skipping = final_lsn <= self._last_commit_ordinal
                self._add(lsn, Kind.BEGIN, 0, b"")
            case "C":
                commit = parse_commit(payload)
                self._add(lsn, Kind.COMMIT, 0, commit.to_bytes())
                self._last_commit_ordinal = max(self._last_commit_ordinal, commit.position.ordinal)
                self._xid, self._skipping = 0, False
            case "R":
                # Kept even when its transaction is skipped: the server sends a shape only once.
                schema = self._describe(parse_relation(payload))
                self._columns.add(lsn, self._xid, Kind.SCHEMA, schema.relation, schema.to_json())
            case "T":
                for relation in parse_truncate(payload).relations:
                    self._add(lsn, Kind.TRUNCATE, relation, payload)
            case "M":
                self._add(lsn, Kind.MESSAGE, 0, payload)
            case "k" if not self._xid:
                # Inside a transaction a keepalive says nothing about what has been received whole.
                self._columns.add(lsn, 0, Kind.KEEPALIVE, 0, b"")

    def _add(self, lsn: int, kind: Kind, relation: int, payload: bytes) -> None:
        if not self._skipping:
            self._columns.add(lsn, self._xid, kind, relation, payload)


class _Columns:
    """Records, column by column."""

    def __init__(self) -> None:
        self.ordinals: list[int] = []
        self.xids: list[int] = []
        self.kinds: list[int] = []
        self.relations: list[int] = []
        self.payloads: list[bytes] = []

    def add(self, lsn: int, xid: int, kind: Kind, relation: int, payload: bytes) -> None:
        self.ordinals.append(lsn)
        self.xids.append(xid)
        self.kinds.append(kind)
        self.relations.append(relation)
        self.payloads.append(payload)

    def to_batch(self) -> pa.RecordBatch:
        columns = {
            "ordinal": np.array(self.ordinals, np.uint64),
            "xid": np.array(self.xids, np.uint64),
            "sub_xid": np.zeros(len(self.xids), np.uint64),
            "kind": np.array(self.kinds, np.uint8),
            "relation": np.array(self.relations, np.uint32),
            "payload": self.payloads,
        }
        return pa.RecordBatch.from_arrays(
            [pa.array(columns[field.name], field.type) for field in RECORD], schema=RECORD
        )
