"""What is flushed is read back, by another reader, in commit order."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from tests.unit.log.records import (
    IDENTITY,
    batch,
    begin,
    change,
    commit,
    keepalive,
    open_log,
    played,
    schema,
    transaction,
)

from tailrace.errors import DefiniteError
from tailrace.log.files.layout import segment_path
from tailrace.log.index.transactions import NEWEST_ROWS
from tailrace.log.playback.play import read
from tailrace.log.playback.ranges import ByteRange
from tailrace.log.reader import LogReader
from tailrace.log.write.writer import LogOptions, LogWriter
from tailrace.model.kind import Kind


@pytest.fixture
def writer(tmp_path: Path) -> LogWriter:
    return open_log(tmp_path)


def test_a_flushed_transaction_is_seen_by_a_reader_that_was_there_before(writer: LogWriter) -> None:
    reader = LogReader(writer.path)
    assert reader.head.seq == 0
    writer.append(batch(transaction(7, 100, b"a", b"b")))
    assert reader.refresh().seq == 0
    writer.flush()
    assert reader.refresh().seq == 1
    assert played(writer.path) == [(1, b"a"), (1, b"b")]


def test_the_index_tells_everything_of_a_transaction(writer: LogWriter) -> None:
    writer.append(batch([schema(3, "id"), *transaction(7, 100, b"a", b"bb", relation=3, time_us=5)]))
    writer.flush()
    (row,) = LogReader(writer.path).transactions(0, 1).to_pylist()
    assert row == {
        "seq": 1,
        "xid": 7,
        "commit_ordinal": 100,
        "end_ordinal": 108,
        "commit_time_us": 5,
        "first_position": 1,
        "commit_position": 4,
        "changes": 2,
        "bytes": 2 * 33 + 3,
        "relations": [3],
        "streamed": False,
        "aborted": [],
        "detail": b"",
    }


def test_the_head_says_what_is_durable(writer: LogWriter) -> None:
    writer.append(batch(transaction(7, 100, b"a")))
    assert writer.last_commit.ordinal == 0
    head = writer.flush()
    assert (head.seq, head.ordinal, head.position) == (1, 108, 3)
    assert writer.last_commit.ordinal == 100
    writer.append(batch([keepalive(500)]))
    assert writer.flush().ordinal == 500
    assert LogReader(writer.path).head == writer.head


def test_a_segment_is_a_plain_arrow_stream(writer: LogWriter) -> None:
    writer.append(batch(transaction(7, 100, b"a")))
    writer.flush()
    with pa.ipc.open_stream(segment_path(writer.path, 0)) as stream:
        assert stream.read_all()["payload"].to_pylist()[1] == b"a"


def test_interleaved_transactions_come_back_apart_and_in_commit_order(writer: LogWriter) -> None:
    writer.append(batch([begin(7), change(7, b"a"), begin(8), change(8, b"x")]))
    writer.flush()
    writer.append(batch([change(7, b"b"), change(8, b"y"), commit(8, 100), change(7, b"c"), commit(7, 200)]))
    writer.flush()
    assert sorted(played(writer.path)) == [(1, b"x"), (1, b"y"), (2, b"a"), (2, b"b"), (2, b"c")]
    table = LogReader(writer.path).transactions(0, 2)
    assert table["xid"].to_pylist() == [8, 7]
    assert table["streamed"].to_pylist() == [True, True]
    assert played(writer.path, after=1) == [(2, b"a"), (2, b"b"), (2, b"c")]


def test_pieces_hold_every_record_once_and_a_large_transaction_is_split(tmp_path: Path) -> None:
    writer = open_log(tmp_path, LogOptions(frame_bytes_max=4096))
    payloads = [f"{number:05d}".encode() * 20 for number in range(1000)]
    writer.append(batch([*transaction(7, 100, b"small"), *transaction(8, 200, *payloads)]))
    writer.flush()
    ranges = LogReader(writer.path).ranges(0, 2, 20_000)
    assert len(ranges) >= 5
    assert max(part.bytes for part in ranges) < 25_000
    ranges = [ByteRange.from_json(part.to_json()) for part in ranges]
    found = [p for part in ranges for rows in read(writer.path, part, 0, 2) for p in rows["payload"].to_pylist()]
    assert found == [b"small", *payloads]


def test_a_table_filter_gives_that_table_only(writer: LogWriter) -> None:
    writer.append(batch([begin(7), change(7, b"a", 1), change(7, b"b", 2), change(7, b"c", 1), commit(7, 100)]))
    writer.flush()
    assert played(writer.path, relations={1}) == [(1, b"a"), (1, b"c")]
    assert played(writer.path, relations={9}) == []
    assert LogReader(writer.path).relations(0, 1) == {1, 2}


def test_a_table_filter_never_reads_the_payload_of_batches_without_that_table(writer: LogWriter) -> None:
    writer.append(batch([begin(7), change(7, b"other table" * 100, relation=1)]))
    writer.flush()
    writer.append(batch([change(7, b"mine", relation=2), commit(7, 100)]))
    writer.flush()
    path = segment_path(writer.path, 0)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"other table" * 100, b"OTHER TABLE" * 100))
    assert played(writer.path, relations={2}) == [(1, b"mine")]
    with pytest.raises(DefiniteError, match="damaged at byte"):
        played(writer.path, relations={1})


def test_a_filter_by_kind_gives_that_kind_only(writer: LogWriter) -> None:
    writer.append(batch([begin(7), change(7, b"an insert" * 100), change(7, b"an end", kind=Kind.TRUNCATE)]))
    writer.append(batch([change(7, b"more"), commit(7, 100)]))
    writer.flush()
    reader = LogReader(writer.path)
    found = [
        (part.column("seq").to_pylist(), part.column("position").to_pylist(), part.column("kind").to_pylist())
        for each in reader.ranges(0, 1, 1 << 20)
        for part in read(writer.path, each, 0, 1, {1}, {Kind.TRUNCATE})
    ]
    assert found == [([1], [2], [Kind.TRUNCATE])]
    assert [b for each in reader.ranges(0, 1, 1 << 20) for b in read(writer.path, each, 0, 1, {1}, {Kind.DELETE})] == []


def test_schemas_are_listed_by_position_and_carried_into_the_next_segment(writer: LogWriter) -> None:
    writer.append(batch([schema(3, "id"), begin(7), schema(3, "id", "name", xid=7), commit(7, 100)]))
    writer.flush()
    versions = LogReader(writer.path).schemas()
    assert [(v.position, v.relation, v.xid, v.schema.names) for v in versions] == [
        (0, 3, 0, ("id",)),
        (2, 3, 7, ("id", "name")),
    ]
    writer.roll()
    with pa.ipc.open_stream(segment_path(writer.path, 4)) as stream:
        carried = stream.read_all().to_pylist()
    assert [(record["relation"], record["payload"]) for record in carried] == [(3, schema(3, "id", "name").payload)]
    assert len(LogReader(writer.path).schemas()) == 2


def test_names_that_differ_only_in_case_are_told_apart_also_in_an_older_log(writer: LogWriter) -> None:
    writer.append(batch([schema(3, "id", "Name", "name"), *transaction(7, 100, b"a", relation=3)]))
    writer.flush()
    (version,) = LogReader(writer.path).schemas()
    assert version.schema.names == ("id", "Name", "name_3")


def test_a_schema_of_a_transaction_that_rolled_back_was_never_there(writer: LogWriter) -> None:
    from tests.unit.log.records import rollback

    writer.append(batch([begin(7), schema(3, "id", xid=7), rollback(7), *transaction(8, 100, b"a")]))
    writer.flush()
    assert LogReader(writer.path).schemas() == []


def test_transactions_are_found_by_position_and_by_time(writer: LogWriter) -> None:
    for number, time_us in enumerate([10, 30, 20, 40], start=1):
        writer.append(batch(transaction(number, number * 100, b"a", time_us=time_us)))
        writer.roll()
    reader = LogReader(writer.path)
    assert [reader.seq_at(ordinal) for ordinal in (99, 100, 250, 400, 999)] == [0, 1, 2, 4, 4]
    assert [reader.seq_at_time(time) for time in (9, 10, 25, 30, 39, 40)] == [0, 1, 1, 3, 3, 4]


def test_transactions_are_found_among_many_however_old_they_are(writer: LogWriter) -> None:
    count = 2 * NEWEST_ROWS + 100
    for first in range(1, count + 1, 700):
        numbers = range(first, min(first + 700, count + 1))
        writer.append(batch([each for number in numbers for each in transaction(number, number * 100, b"a")]))
        writer.roll()
    reader = LogReader(writer.path)
    wanted = (1, 2, 100, count - NEWEST_ROWS - 1, count - NEWEST_ROWS, count - NEWEST_ROWS + 1, count - 1, count)
    assert reader.seq_at(99) == 0
    for seq in wanted:
        assert [reader.seq_at(seq * 100 + more) for more in (-1, 0, 99)] == [seq - 1, seq, seq]


def test_a_log_of_another_source_is_refused(writer: LogWriter) -> None:
    writer.close()
    with pytest.raises(DefiniteError, match="database shop"):
        LogWriter.open(writer.path, {**IDENTITY, "database": "other"})


def test_a_second_writer_is_told_who_holds_the_log(writer: LogWriter) -> None:
    import os
    import socket

    with pytest.raises(DefiniteError, match=f"process {os.getpid()} on host {socket.gethostname()}"):
        open_log(writer.path)


def test_a_folder_that_is_no_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DefiniteError, match="is not a log"):
        LogReader(tmp_path)


def test_records_of_a_transaction_that_never_began_are_refused_and_change_nothing(writer: LogWriter) -> None:
    with pytest.raises(ValueError, match="transaction 8, which has not begun"):
        writer.append(batch([begin(7), change(8, b"a")]))
    assert writer.active == {}
    assert writer.flush().position == 0


def test_a_record_after_its_transactions_commit_is_refused(writer: LogWriter) -> None:
    with pytest.raises(ValueError, match="transaction 7, which has not begun"):
        writer.append(batch([*transaction(7, 100, b"a"), change(7, b"late")]))
    with pytest.raises(ValueError, match="transaction 7, which has not begun"):
        writer.append(batch([*transaction(7, 100, b"a"), commit(7, 200)]))


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_compressed_segments_read_back_the_same(tmp_path: Path, compression: str) -> None:
    writer = open_log(tmp_path, LogOptions(compression=compression))
    writer.append(batch(transaction(7, 100, b"a" * 10_000, b"b")))
    writer.flush()
    assert played(tmp_path) == [(1, b"a" * 10_000), (1, b"b")]
    assert segment_path(tmp_path, 0).stat().st_size < 5000
