"""The counter of changes never goes back while a server runs, and counts each of them once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.log.records import batch, begin, change, open_log, schema, transaction

from tailrace.lake.home import LakeHome, SourceRecord
from tailrace.log.write.writer import LogWriter
from tailrace.server.lakes.changes import ChangeCounts


@pytest.fixture
def home(tmp_path: Path) -> LakeHome:
    home = LakeHome.create(tmp_path / "lake")
    home.store_source(SourceRecord({"source": "scripted", "database": "shop"}, {}, "delta"))
    return home


def append(writer: LogWriter, xid: int, *payloads: bytes) -> None:
    writer.append(batch(transaction(xid, xid * 100, *payloads)))
    writer.flush()


def test_a_lake_without_a_log_has_no_count(home: LakeHome) -> None:
    assert ChangeCounts().count(home) is None


def test_every_change_is_counted_once_when_its_transaction_has_finished(home: LakeHome) -> None:
    writer, counts = open_log(home.log), ChangeCounts()
    writer.append(batch([schema(1, "id"), *transaction(7, 100, b"before", b"the first look")]))
    writer.flush()
    assert counts.count(home) == 0
    append(writer, 8, b"one")
    assert (counts.count(home), counts.count(home)) == (1, 1)
    writer.append(batch([begin(9), change(9, b"waits")]))
    writer.flush()
    assert counts.count(home) == 1
    writer.roll()
    append(writer, 10, b"two", b"three")
    assert counts.count(home) == 3
    writer.close()
    # Another run, which no one has told of.
    writer = open_log(home.log)
    append(writer, 11, b"four")
    assert counts.count(home) == 4
    writer.close()


def test_a_long_time_without_a_look_is_counted_bit_by_bit(home: LakeHome) -> None:
    writer, counts = open_log(home.log), ChangeCounts(rows_max=2)
    writer.append(batch([schema(1, "id"), *transaction(7, 100, b"x")]))
    writer.flush()
    assert counts.count(home) == 0
    for xid in range(10, 15):
        append(writer, xid, b"x")
    assert [counts.count(home) for _ in range(4)] == [2, 4, 5, 5]
    writer.close()


def test_what_was_deleted_unseen_is_left_out_and_what_follows_is_counted(home: LakeHome) -> None:
    writer, counts = open_log(home.log), ChangeCounts()
    writer.append(batch([schema(1, "id"), *transaction(7, 100, b"x")]))
    writer.flush()
    assert counts.count(home) == 0
    append(writer, 8, b"unseen")
    writer.roll()
    append(writer, 9, b"one", b"two")
    for path in sorted(home.log.iterdir()):
        if path.name.startswith("0" * 20):
            path.unlink()
    assert counts.count(home) == 2
    append(writer, 10, b"three")
    assert counts.count(home) == 3
    writer.close()
