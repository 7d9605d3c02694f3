"""A Delta table needs no more of its place than the door to storage has: it is written, published into, merged and
pruned in a bucket that has neither files nor folders, and others read what lies there then."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from duckdb import connect
from tests.doors.memory_bucket import MemoryBucket
from tests.doors.writing import copy, maintained, publish

from tailrace.errors import ResyncError
from tailrace.lake.delta.format import DeltaFormat
from tailrace.lake.door import ConflictError, Wanted
from tailrace.lake.stamp import Stamp
from tailrace.model.change import DELETED, FRESH, ORIGIN, UNCHANGED, row_schema
from tailrace.model.position import SourcePosition
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.storage.local import LocalFolder

COLUMNS = (Column("id", "int", "INT", 1), Column("n", "int", "INT", 2), Column("big", "string", "TEXT", 3))
SCHEMA = TableSchema(TableId("a", "t"), 7, COLUMNS, ("id",))
STATES = pa.schema(
    [
        *row_schema(SCHEMA),
        (DELETED, pa.bool_()),
        (FRESH, pa.bool_()),
        (UNCHANGED, pa.list_(pa.string())),
        (ORIGIN, pa.struct([("id", pa.int32())])),
    ]
)
Rows = dict[int, tuple[int, str]]


@pytest.fixture
def bucket(tmp_path: Path) -> MemoryBucket:
    return MemoryBucket(str(tmp_path), tmp_path / "cache").at("a/t")


def stamp(seq: int | None) -> Stamp:
    return Stamp(SourcePosition(seq or 0), 7, 1, seq)


def begun(bucket: MemoryBucket, rows: Rows) -> None:
    given = [{"id": id, "n": n, "big": big} for id, (n, big) in rows.items()]
    copy(DeltaFormat().table(bucket), pa.Table.from_pylist(given, row_schema(SCHEMA)), SCHEMA, stamp(None), parts=2)


def changed(rows: Rows, chance: random.Random, fresh: int) -> list[dict[str, Any]]:
    """A row of every kind of change, which the rows have then too."""
    gone, updated, partial = chance.sample(sorted(rows), 3)
    plain = {DELETED: False, FRESH: False, UNCHANGED: None, ORIGIN: None}
    del rows[gone]
    rows[updated] = chance.randrange(1000), "updated"
    rows[partial] = chance.randrange(1000), rows[partial][1]
    rows[fresh] = fresh, "fresh"
    return [
        {"id": gone, "n": None, "big": None, **plain, DELETED: True},
        {"id": updated, "n": rows[updated][0], "big": "updated", **plain},
        {"id": partial, "n": rows[partial][0], "big": None, **plain, UNCHANGED: ["big"]},
        {"id": fresh, "n": fresh, "big": "fresh", **plain, FRESH: True},
    ]


def read(bucket: MemoryBucket, version: int, folder: Path) -> Rows:
    """By DuckDB, from files that are the objects."""
    bucket.copy_to(folder)
    scan = DeltaFormat().table(LocalFolder(folder)).scan(version)
    with connect() as connection:
        connection.execute(f"load '{scan.extension}'")
        found = connection.sql(f"select id, n, big from {scan.sql}").fetchall()
    assert len({row[0] for row in found}) == len(found)
    return {id: (n, big) for id, n, big in found}


def test_a_table_is_published_into_merged_pruned_and_read_by_others(bucket: MemoryBucket, tmp_path: Path) -> None:
    rows: Rows = {id: (id, f"text {id}") for id in range(100)}
    begun(bucket, rows)
    chance, merged, past = random.Random(7), 0, {}
    for seq in range(1, 41):
        table = DeltaFormat().table(bucket)
        table.recover(None, tmp_path / "aside")
        states = pa.Table.from_pylist(changed(rows, chance, 1000 + seq), STATES)
        version = publish(table, states, SCHEMA, stamp(seq), parts=2)
        table.make_durable(version - 1)
        merged += maintained(table) is not None
        if seq in (20, 40):
            past[version] = dict(rows)
    assert merged > 2
    before = len(bucket.names())
    wanted = Wanted(frozenset(past), until=time.time() + 60, strangers_until=time.time() + 60)
    pruned = DeltaFormat().table(bucket).prune(wanted)
    assert pruned.files > 20
    assert pruned.commits > 20
    assert len(bucket.names()) == before - pruned.files
    for number, content in past.items():
        assert read(bucket, number, tmp_path / "files") == content
    found = DeltaFormat().table(bucket).version()
    assert found is not None
    assert found.stamp == stamp(40)
    assert [column.name for column in DeltaFormat().table(bucket).columns(found.number)] == ["id", "n", "big"]
    assert not (tmp_path / "cache").exists()
    assert not (tmp_path / "aside").exists()


def test_a_commit_whose_answer_was_lost_is_ours_and_another_writers_is_a_conflict(bucket: MemoryBucket) -> None:
    begun(bucket, {1: (1, "one")})
    ours, theirs = DeltaFormat().table(bucket), DeltaFormat().table(bucket)
    drafts = [table.publish(SCHEMA, stamp(seq)) for seq, table in enumerate((ours, theirs), 1)]
    bucket.lose_answers(1)
    assert drafts[0].commit([]) == 1
    with pytest.raises(ConflictError, match="another writer made version 1"):
        drafts[1].commit([])
    found = theirs.version()
    assert found is not None
    assert found.stamp == stamp(1)


def test_an_object_that_is_gone_is_noticed_by_the_publish_that_needs_it(bucket: MemoryBucket) -> None:
    begun(bucket, {1: (1, "one"), 2: (2, "two")})
    bucket.delete(name for name in bucket.names() if name.endswith(".parquet"))
    states = pa.Table.from_pylist([{"id": 1, "n": 1, DELETED: False, FRESH: False, UNCHANGED: ["big"]}], STATES)
    with pytest.raises(ResyncError, match="is gone"):
        publish(DeltaFormat().table(bucket), states, SCHEMA, stamp(1))
