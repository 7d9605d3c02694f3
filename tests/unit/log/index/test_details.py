"""A commit's detail is bytes that only its source reads: whatever they are, they come back as they were."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.log.detail_properties import (
    STEPS,
    Step,
    check_a_cut_at_any_byte,
    check_a_restart_and_a_rebuilt_index,
    check_retention,
)
from tests.unit.log.records import (
    Record,
    batch,
    begin,
    change,
    commit,
    keepalive,
    open_log,
    point,
    rollback_sub,
    transaction,
)

from tailrace.errors import DefiniteError
from tailrace.log.files.layout import INDEX_SUFFIXES, index_path
from tailrace.log.index.transactions import TransactionIndex, transaction_table
from tailrace.log.reader import LogReader
from tailrace.log.verify import verify

quick = settings(deadline=None, max_examples=6)


@quick
@given(STEPS)
def test_details_come_back_after_a_restart_and_from_a_rebuilt_index(steps: list[Step]) -> None:
    check_a_restart_and_a_rebuilt_index(steps)


@quick
@given(STEPS, st.data())
def test_a_log_cut_at_any_byte_ends_with_a_whole_detail(steps: list[Step], data: st.DataObject) -> None:
    check_a_cut_at_any_byte(steps, data)


@quick
@given(STEPS, st.data())
def test_the_last_commit_is_known_when_retention_has_deleted_it(steps: list[Step], data: st.DataObject) -> None:
    check_retention(steps, data)


@pytest.mark.parametrize("size", [65_536, 1_000_003])
def test_a_long_detail_is_kept_in_the_index_and_in_the_next_segment(tmp_path: Path, size: int) -> None:
    detail = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    writer = open_log(tmp_path)
    for seq in (1, 2, 3):
        writer.append(batch(transaction(seq, seq * 100, b"a", detail=detail[seq:])))
        writer.roll()
    LogReader(tmp_path).acknowledge("lake", 3)
    assert len(writer.retain()) == 3
    writer.close()
    writer = open_log(tmp_path)
    assert (writer.last_commit.ordinal, writer.last_commit.detail) == (300, detail[3:])
    writer.append(batch(transaction(4, 400, b"a", detail=detail)))
    writer.flush()
    assert LogReader(tmp_path).position_of(4).detail == detail
    assert LogReader(tmp_path).position_of(3).detail == detail[3:]


def test_many_long_details_are_read_a_few_at_a_time(tmp_path: Path) -> None:
    writer = open_log(tmp_path)
    details = [b"%d" % seq * 500 for seq in range(1, 20)]
    for seq, detail in enumerate(details, 1):
        writer.append(batch(transaction(seq, seq * 100, b"a", relation=seq % 3 + 1, detail=detail)))
    writer.flush()
    index = TransactionIndex(tmp_path, portion_words=100)
    table = transaction_table(*index.read(0, 19, with_details=True))
    assert table["detail"].to_pylist() == details
    assert table["relations"].to_pylist() == [[seq % 3 + 1] for seq in range(1, 20)]
    assert [len(rows) for rows, _ in index.portions(0, 19)] == [1] * 19


def test_words_that_change_places_in_a_detail_are_damage(tmp_path: Path) -> None:
    writer = open_log(tmp_path)
    writer.append(batch(transaction(1, 100, b"a", detail=b"11111111" + b"22222222")))
    writer.roll()
    writer.close()
    lists = index_path(tmp_path, 0, ".lists")
    lists.write_bytes(lists.read_bytes().replace(b"1111111122222222", b"2222222211111111"))
    with pytest.raises(DefiniteError, match=r"\.transactions is damaged at byte 0"):
        LogReader(tmp_path).transactions(0, 1)
    assert verify(tmp_path).problems


def test_a_detail_comes_with_relations_and_aborted_sub_transactions(tmp_path: Path) -> None:
    writer = open_log(tmp_path)
    aborting = [begin(7), change(7, b"a", 3), change(7, b"b", 2, sub_xid=9), rollback_sub(7, 9)]
    writer.append(batch([*aborting, commit(7, 100, detail=b"first"), *transaction(8, 200, b"c"), begin(9)]))
    writer.append(batch([change(9, b"d", 5), commit(9, 300, detail=b"third")]))
    writer.flush()
    table = LogReader(tmp_path).transactions(0, 3)
    assert table["relations"].to_pylist() == [[2, 3], [1], [5]]
    assert table["aborted"].to_pylist() == [[9], [], []]
    assert table["detail"].to_pylist() == [b"first", b"", b"third"]


def test_what_was_received_has_the_detail_of_the_record_that_says_so(tmp_path: Path) -> None:
    writer = open_log(tmp_path)
    assert point(writer.received) == (0, 0, b"")
    writer.append(batch([*transaction(1, 100, b"a", time_us=5, detail=b"commit"), keepalive(107, b"too early")]))
    assert point(writer.received) == (0, 0, b"")
    writer.flush()
    assert point(writer.received) == (108, 5, b"commit")
    writer.append(batch([keepalive(500, b"first"), keepalive(500, b"second"), keepalive(400, b"old")]))
    writer.flush()
    assert (writer.head.ordinal, point(writer.received)) == (500, (500, 0, b"second"))
    assert point(writer.last_commit) == (100, 5, b"commit")
    writer.close()
    for _ in range(2):
        writer = open_log(tmp_path)
        assert point(writer.received) == (500, 0, b"second")
        writer.roll()
        writer.close()


@pytest.mark.parametrize("is_flushed", [False, True])
def test_of_two_records_that_reach_equally_far_the_later_one_counts(tmp_path: Path, is_flushed: bool) -> None:
    writer = open_log(tmp_path)
    finished = transaction(1, 100, b"a", time_us=5, detail=b"commit")
    for records, expected in (
        ([keepalive(108, b"before")], (108, 0, b"before")),
        (finished, (108, 5, b"commit")),
        ([keepalive(108, b"after")], (108, 0, b"after")),
    ):
        writer.append(batch(records))
        if is_flushed:
            writer.flush()
            assert point(writer.received) == expected
    writer.append(batch([keepalive(208, b"before"), *transaction(2, 200, b"a", time_us=6, detail=b"second")]))
    writer.flush()
    assert point(writer.received) == (208, 6, b"second")


def test_opening_a_sound_log_leaves_sealed_indexes_alone(tmp_path: Path) -> None:
    writer = open_log(tmp_path)
    writer.append(batch(transaction(1, 100, b"a", detail=b"some detail")))
    writer.roll()
    writer.close()
    files = [index_path(tmp_path, 0, suffix) for suffix in INDEX_SUFFIXES]
    before = [file.stat().st_ino for file in files]
    open_log(tmp_path).close()
    assert [file.stat().st_ino for file in files] == before


def test_a_commit_whose_payload_is_too_short_is_refused(tmp_path: Path) -> None:
    writer = open_log(tmp_path)
    short = Record(commit(7, 100).kind, 7, payload=commit(7, 100).payload[:-1])
    with pytest.raises(ValueError, match="without a commit payload"):
        writer.append(batch([begin(7), short]))
    assert writer.active == {}


def test_positions_that_are_not_there_are_said_to_be(tmp_path: Path) -> None:
    writer = open_log(tmp_path)
    reader = LogReader(tmp_path)
    assert point(reader.position_of(0)) == (0, 0, b"")
    with pytest.raises(ValueError, match="transaction 1 comes after the head, 0"):
        reader.position_of(1)
    writer.close()


def test_a_log_of_an_older_format_is_refused_with_what_to_do(tmp_path: Path) -> None:
    open_log(tmp_path).close()
    manifest = tmp_path / "log.json"
    manifest.write_text(manifest.read_text().replace('"format": 3', '"format": 2'))
    for open_somehow in (LogReader, open_log):
        with pytest.raises(DefiniteError, match="has log format 2, this version reads format 3 only") as refusal:
            open_somehow(tmp_path)
        assert refusal.value.hint == "build the lake again, in an empty folder"
