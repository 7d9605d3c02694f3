"""A Delta table lies in a bucket of a real server: it is published into, merged and pruned over a bad network, and
DuckDB reads what is there."""

from __future__ import annotations

import random
import time
import uuid
from pathlib import Path

import pyarrow as pa
from duckdb import connect
from tests.cutting_proxy import Fault, Request, cutting
from tests.doors.writing import copy, maintained, publish
from tests.s3 import S3Server
from tests.unit.lake.delta.test_in_a_bucket import SCHEMA, STATES, Rows, changed, stamp

from tailrace.lake.delta.format import DeltaFormat
from tailrace.lake.door import Wanted
from tailrace.model.backoff import Backoff
from tailrace.model.change import row_schema
from tailrace.storage.bucket import Bucket
from tailrace.storage.bucket_client import StorePatience
from tailrace.storage.local import LocalFolder

FAULTS = [Fault.AFTER, Fault.BEFORE, Fault.BUSY, Fault.CONFLICT, Fault.DONE_AND_INTERNAL, Fault.DURING]


def test_a_table_is_published_into_merged_and_pruned_over_a_bad_network(s3: S3Server, tmp_path: Path) -> None:
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    chance = random.Random(seed)

    def decide(request: Request) -> Fault:
        if chance.random() > 0.1 or not request.is_conditional_put:
            return Fault.NONE
        return chance.choice(FAULTS)

    url = f"{s3.make_bucket(uuid.uuid4().hex)}/lake"
    patience = StorePatience(Backoff(0.001, 0.01))
    with cutting(s3.port, decide=decide) as proxy:
        options = {**s3.options, **proxy.options}
        bucket = Bucket.of(url, options, patience=patience, cache_root=tmp_path / "cache").at("a/t")
        rows: Rows = {id: (id, f"text {id}") for id in range(60)}
        given = [{"id": id, "n": n, "big": big} for id, (n, big) in rows.items()]
        copy(DeltaFormat().table(bucket), pa.Table.from_pylist(given, row_schema(SCHEMA)), SCHEMA, stamp(None), parts=2)
        merged, version = 0, 0
        for seq in range(1, 7):
            table = DeltaFormat().table(bucket)
            states = pa.Table.from_pylist(changed(rows, chance, 1000 + seq), STATES)
            version = publish(table, states, SCHEMA, stamp(seq), parts=2)
            table.make_durable(version - 1)
            merged += maintained(table) is not None
        before = len(bucket.names())
        wanted = Wanted(frozenset({version}), until=time.time() + 60, strangers_until=time.time() + 60)
        pruned = DeltaFormat().table(bucket).prune(wanted)
        assert merged
        assert len(bucket.names()) == before - pruned.files
    # An object of this server is a file.
    scan = DeltaFormat().table(LocalFolder(s3.folder / bucket.place.bucket / bucket.folder)).scan(version)
    with connect() as connection:
        connection.execute(f"load '{scan.extension}'")
        found = connection.sql(f"select id, n, big from {scan.sql}").fetchall()
    assert {id: (n, big) for id, n, big in found} == rows
    assert len(found) == len(rows)
