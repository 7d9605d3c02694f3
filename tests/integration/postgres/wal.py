"""Real changes from a real slot, as the log would hand them to the decoder."""

from __future__ import annotations

import struct
from typing import Any

import psycopg
import pyarrow as pa

from tailrace.model.kind import Kind
from tailrace.model.table import TableSchema
from tailrace.source.postgres.server.lsn import Lsn
from tailrace.source.postgres.stream.encoding.announced_shapes import describe_announced
from tailrace.source.postgres.values.messages import POSTGRES_EPOCH_US, parse_commit, parse_relation, parse_truncate
from tailrace.source.postgres.values.row_changes import decode

KINDS = {b"I": Kind.INSERT, b"U": Kind.UPDATE, b"D": Kind.DELETE, b"T": Kind.TRUNCATE}


class Stream:
    """A slot and a publication of some tables. Reads what was committed since the last read."""

    def __init__(self, conn: psycopg.Connection, *tables: str) -> None:
        self._conn = conn
        self.table = tables[0]
        self.schemas: dict[int, TableSchema] = {}
        self._name = f"stream_{conn.info.dbname}"
        listed = ", ".join(tables)
        conn.execute(f"create publication {self._name} for table {listed} with (publish_via_partition_root = true)")
        conn.execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", [self._name])

    def close(self) -> None:
        self._conn.execute("select pg_drop_replication_slot(%s)", [self._name])
        self._conn.execute(f"drop publication {self._name}")

    def messages(self) -> list[tuple[Lsn, int, bytes]]:
        rows = self._conn.execute(
            "select lsn::text, xid::text::bigint, data from pg_logical_slot_get_binary_changes("
            "%(name)s::name, null, null, 'proto_version', '1', 'publication_names', %(name)s::text)",
            {"name": self._name},
        )
        return [(Lsn.parse(lsn), xid, data) for lsn, xid, data in rows]

    def changes(self, name: str) -> Any:
        """The decoded changes of the table called `name` since the last read."""
        records, time_us = [], 0
        for lsn, xid, payload in self.messages():
            if payload[:1] == b"R":
                schema = describe_announced(self._conn, parse_relation(payload)).schema
                self.schemas[schema.relation] = schema
            elif payload[:1] == b"B":
                final_lsn, time_us, began = struct.unpack(">QqI", payload[1:])
                time_us += POSTGRES_EPOCH_US
                assert began == xid
            elif payload[:1] == b"C":
                assert parse_commit(payload).position.ordinal == final_lsn
                assert parse_commit(payload).position.time_us == time_us
            elif payload[:1] in KINDS:
                records += [(lsn, final_lsn, time_us, xid, kind, oid, payload) for kind, oid in targets(payload)]
        (schema,) = [schema for schema in self.schemas.values() if schema.table.name == name]
        return decode(batch([record for record in records if record[5] == schema.relation]), schema)


def targets(payload: bytes) -> list[tuple[Kind, int]]:
    kind = KINDS[payload[:1]]
    if kind is Kind.TRUNCATE:
        return [(kind, relation) for relation in parse_truncate(payload).relations]
    return [(kind, int.from_bytes(payload[1:5], "big"))]


def batch(records: list[tuple[Any, ...]]) -> Any:
    lsn, commit_lsn, time_us, xid, kind, relation, payload = zip(*records, strict=True) if records else ((),) * 7
    return pa.RecordBatch.from_pydict(
        {
            "seq": pa.array(range(len(records)), pa.int64()),
            "position": pa.array(range(len(records)), pa.int64()),
            "ordinal": pa.array(lsn, pa.uint64()),
            "commit_ordinal": pa.array(commit_lsn, pa.uint64()),
            "commit_time_us": pa.array(time_us, pa.int64()),
            "xid": pa.array(xid, pa.uint64()),
            "kind": pa.array(kind, pa.uint8()),
            "relation": pa.array(relation, pa.uint32()),
            "payload": pa.array(payload, pa.binary()),
        }
    )
