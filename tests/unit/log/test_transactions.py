"""Partial rollbacks, undone changes and repeated transactions: what is forgotten stays out of playback."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.log.random_undo import logged, undo_at_random
from tests.unit.log.records import (
    Record,
    batch,
    begin,
    change,
    commit,
    open_log,
    played,
    rollback,
    rollback_sub,
    schema,
    transaction,
    undo,
)

from tailrace.log.files.layout import segment_path
from tailrace.log.reader import LogReader
from tailrace.log.write.writer import LogWriter
from tailrace.model.kind import Kind


@pytest.fixture
def writer(tmp_path: Path) -> LogWriter:
    return open_log(tmp_path)


@pytest.mark.parametrize("flush_every", [1, 2, 1000])
class TestInAnyFlush:
    def test_an_aborted_sub_transaction_is_left_out(self, writer: LogWriter, flush_every: int) -> None:
        records = [
            begin(7),
            change(7, b"top"),
            change(7, b"lost", sub_xid=8),
            change(7, b"kept", sub_xid=9),
            rollback_sub(7, 8),
            commit(7, 100),
        ]
        assert logged(writer, records, flush_every) == [(1, b"top"), (1, b"kept")]
        assert LogReader(writer.path).transactions(0, 1)["aborted"].to_pylist() == [[8]]

    def test_the_same_sub_transaction_number_of_another_transaction_is_not_aborted(
        self, writer: LogWriter, flush_every: int
    ) -> None:
        records = [begin(7), begin(8), change(7, b"a", sub_xid=1), change(8, b"b", sub_xid=1)]
        records += [rollback_sub(7, 1), commit(7, 100), commit(8, 200)]
        assert logged(writer, records, flush_every) == [(2, b"b")]

    def test_an_undo_takes_back_the_newest_change_of_its_table(self, writer: LogWriter, flush_every: int) -> None:
        records = [begin(7), change(7, b"a1", 1), change(7, b"a2", 1), change(7, b"b1", 2)]
        records += [undo(7, 1), change(7, b"a3", 1), undo(7, 1), undo(7, 1), change(7, b"a4", 1), commit(7, 100)]
        assert logged(writer, records, flush_every) == [(1, b"b1"), (1, b"a4")]

    def test_a_rolled_back_transaction_leaves_nothing(self, writer: LogWriter, flush_every: int) -> None:
        records = [begin(7), change(7, b"a"), rollback(7), *transaction(8, 100, b"b")]
        assert logged(writer, records, flush_every) == [(1, b"b")]
        assert writer.active == {}

    def test_a_transaction_begun_again_forgets_what_was_sent_before(self, writer: LogWriter, flush_every: int) -> None:
        records = [begin(7), change(7, b"first try"), begin(7), change(7, b"second try"), commit(7, 100)]
        assert logged(writer, records, flush_every) == [(1, b"second try")]

    def test_an_xid_that_comes_again_is_another_transaction(self, writer: LogWriter, flush_every: int) -> None:
        records = [*transaction(7, 100, b"a"), *transaction(7, 200, b"b"), *transaction(7, 300, b"c")]
        assert logged(writer, records, flush_every) == [(1, b"a"), (2, b"b"), (3, b"c")]
        assert played(writer.path, after=1, upto=2) == [(2, b"b")]

    def test_lob_and_xml_records_come_back_in_order(self, writer: LogWriter, flush_every: int) -> None:
        kinds = [Kind.LOB_LOCATOR, Kind.LOB_WRITE, Kind.LOB_ERASE, Kind.XML_BEGIN, Kind.XML_WRITE, Kind.XML_END]
        changes = [change(7, kind.name.encode(), kind=kind) for kind in kinds]
        found = logged(writer, [begin(7), *changes, commit(7, 100)], flush_every)
        assert [payload.decode() for _, payload in found] == [kind.name for kind in kinds]


def test_rollbacks_of_transactions_that_are_not_known_are_harmless(writer: LogWriter) -> None:
    assert logged(writer, [rollback(99), rollback_sub(98, 1), *transaction(7, 100, b"a")]) == [(1, b"a")]
    assert writer.active == {}


def test_commits_that_go_backwards_are_refused(writer: LogWriter) -> None:
    writer.append(batch(transaction(7, 200, b"a")))
    with pytest.raises(ValueError, match="commit at 100 after the commit at 200"):
        writer.append(batch(transaction(8, 100, b"b")))


@pytest.mark.parametrize("seed", range(3))
def test_undone_changes_agree_with_a_stack(writer: LogWriter, seed: int) -> None:
    undo_at_random(writer, seed)


def test_a_schema_of_an_unfinished_transaction_is_carried_with_its_owner(writer: LogWriter) -> None:
    writer.append(batch([schema(3, "id"), begin(7), schema(3, "id", "name", xid=7), change(7, b"a", 3)]))
    writer.roll()
    with pa.ipc.open_stream(segment_path(writer.path, 4)) as stream:
        carried = stream.read_all()
    assert carried["xid"].to_pylist() == [0, 7]
    assert [v.schema.names for v in LogReader(writer.path).schemas()] == [("id",)]
    writer.append(batch([commit(7, 100)]))
    writer.flush()
    assert [v.schema.names for v in LogReader(writer.path).schemas()] == [("id",), ("id", "name")]


def test_a_shape_is_its_own_transactions_at_once_and_the_others_after_the_commit(writer: LogWriter) -> None:
    writer.append(batch([schema(3, "id"), begin(8), begin(7), schema(3, "id", "name", xid=7)]))
    writer.roll()
    writer.append(batch([change(7, b"a", 3), change(8, b"b", 3), commit(7, 100), change(8, b"c", 3), commit(8, 200)]))
    writer.flush()
    old, new = LogReader(writer.path).schemas()
    assert (old.position, old.xid, old.since, old.schema.names) == (0, 0, 0, ("id",))
    # The roll has written both shapes again, at positions 4 and 5; the commit of 7 is at position 8.
    assert (new.position, new.xid, new.since, new.schema.names) == (3, 7, 8, ("id", "name"))


def test_bytes_and_tables_of_a_range_are_those_of_its_transactions(writer: LogWriter) -> None:
    for number in range(1, 6):
        writer.append(batch(transaction(number, number * 100, b"x" * number, relation=number)))
    writer.flush()
    reader = LogReader(writer.path)
    assert reader.relations(1, 4) == {2, 3, 4}
    assert reader.bytes_between(1, 4) == sum(33 + number for number in (2, 3, 4))


def test_pieces_leave_out_what_lies_between_the_transactions_of_a_range(writer: LogWriter) -> None:
    writer.append(batch([begin(7), change(7, b"long ago")]))
    writer.flush()
    for xid in range(100, 120):
        writer.append(batch(transaction(xid, xid, b"x" * 1000)))
        writer.flush()
    reader = LogReader(writer.path)
    (part,) = reader.ranges(18, 20, 1 << 20)
    assert part.position > 50
    assert np.sum([p.bytes for p in reader.ranges(0, 20, 1 << 20)]) > 10 * part.bytes / 3


def test_a_transaction_begun_again_is_told_apart_when_the_filter_skips_its_begin(writer: LogWriter) -> None:
    writer.append(batch([begin(9), change(9, b"nine", 1), begin(7), change(7, b"first try", 1)]))
    writer.flush()
    writer.append(batch([begin(7)]))
    writer.flush()
    writer.append(batch([change(7, b"second try", 1), commit(7, 100), commit(9, 200)]))
    writer.flush()
    assert played(writer.path, relations={1}) == [(2, b"nine"), (1, b"second try")]


def test_an_undo_that_comes_after_its_commit_takes_nothing_back(tmp_path: Path) -> None:
    writer = open_log(tmp_path)
    writer.append(batch([*transaction(7, 100, b"a", b"b"), undo(7, 1)]))
    writer.flush()
    assert played(tmp_path) == [(1, b"a"), (1, b"b")]


@pytest.mark.parametrize("kind", [0, 10, 99, 255])
def test_a_record_of_unknown_kind_is_refused(tmp_path: Path, kind: int) -> None:
    writer = open_log(tmp_path)
    unknown = Record(kind, 7, relation=1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"unknown kind {kind}"):
        writer.append(batch([begin(7), unknown, commit(7, 100)]))
    assert writer.active == {}


def test_a_batch_is_as_heavy_as_one_may_be(tmp_path: Path) -> None:
    writer = open_log(tmp_path)
    writer.append(batch(transaction(7, 100, b"a" * (9 << 20), b"b", b"c" * (20 << 20))))
    writer.flush()
    assert [len(payload) for _, payload in played(tmp_path)] == [9 << 20, 1, 20 << 20]


def test_how_far_a_batch_of_transactions_reaches(tmp_path: Path) -> None:
    writer = open_log(tmp_path)
    for seq in range(1, 8):
        writer.append(batch(transaction(seq, seq * 100, b"x" * 67)))
    writer.flush()
    reader = LogReader(tmp_path, portion_rows=2)
    assert [reader.last_within(0, bytes_max) for bytes_max in (0, 99, 100, 199, 200, 250, 500, 10_000)] == [
        1,
        1,
        1,
        1,
        2,
        2,
        5,
        7,
    ]
    assert (reader.last_within(6, 0), reader.last_within(7, 1000)) == (7, 7)
