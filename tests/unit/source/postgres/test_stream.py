"""The stream as log records: order kept, what the log has left out whole, positions only between transactions."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.commit import Commit
from tailrace.model.kind import Kind
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId, TableSchema
from tailrace.source.postgres._announced import Described
from tailrace.source.postgres._identity import end_of_records
from tailrace.source.postgres._lsn import Lsn
from tailrace.source.postgres._messages import Relation
from tailrace.source.postgres._stream import Known, StreamEncoder

POSTGRES_EPOCH_US = 946_684_800_000_000


def data(lsn: int, payload: bytes) -> bytes:
    return struct.pack(">cQQq", b"w", lsn, lsn, 0) + payload


def keepalive(lsn: int) -> bytes:
    return struct.pack(">cQqB", b"k", lsn, 0, 0)


def transaction(commit_lsn: int, xid: int, changes: int) -> list[bytes]:
    begin = data(commit_lsn - 5, struct.pack(">cQqI", b"B", commit_lsn, 0, xid))
    rows = [data(commit_lsn - 4, struct.pack(">cI", b"I", 7) + bytes([n])) for n in range(changes)]
    return [begin, *rows, data(commit_lsn, struct.pack(">cBQQq", b"C", 0, commit_lsn, commit_lsn + 3, 0))]


def describe(relation: Relation, is_settled: bool = True) -> Described:
    return Described(TableSchema(TableId(relation.namespace, relation.name), relation.oid, (), ()), is_settled)


@given(st.lists(st.integers(0, 4), max_size=8), st.integers(0, 8), st.lists(st.integers(1, 5), min_size=1), st.data())
def test_however_the_stream_is_cut_up_each_new_transaction_is_there_once_and_whole(
    sizes: list[int], known: int, steps: list[int], draw: st.DataObject
) -> None:
    messages: list[bytes] = []
    for number, size in enumerate(sizes, 1):
        messages += transaction(100 * number, number, size)
        messages += [keepalive(100 * number + 50)] * draw.draw(st.integers(0, 2))
    encoder = StreamEncoder(Known(100 * known), describe)
    rows = []
    while messages:
        step = steps[len(rows) % len(steps)]
        rows += encoder.encode(messages[:step]).to_pylist()
        messages = messages[step:]
    expected = [
        (kind, number)
        for number, size in enumerate(sizes, 1)
        if number > known
        for kind in [Kind.BEGIN, *[Kind.INSERT] * size, Kind.COMMIT]
    ]
    assert [(row["kind"], row["xid"]) for row in rows if row["kind"] != Kind.KEEPALIVE] == expected
    assert all(row["relation"] == 7 for row in rows if row["kind"] == Kind.INSERT)
    assert all(row["payload"][:1] == b"I" for row in rows if row["kind"] == Kind.INSERT)


def test_a_commit_carries_its_position_and_time() -> None:
    rows = StreamEncoder(Known(), describe).encode(transaction(500, 9, 1)).to_pylist()
    commit = Commit.from_bytes(rows[-1]["payload"])
    assert commit == Commit(SourcePosition(500, POSTGRES_EPOCH_US), 503)


def test_a_keepalive_inside_a_transaction_says_nothing() -> None:
    begin, row, commit = transaction(500, 9, 1)
    rows = StreamEncoder(Known(), describe).encode([begin, keepalive(499), row, commit, keepalive(600)]).to_pylist()
    assert [(row["kind"], row["ordinal"]) for row in rows if row["kind"] == Kind.KEEPALIVE] == [(Kind.KEEPALIVE, 600)]


def test_a_truncate_of_several_tables_is_one_record_each() -> None:
    begin, commit = transaction(500, 9, 0)
    truncate = data(499, struct.pack(">cIBII", b"T", 2, 0, 7, 8))
    rows = StreamEncoder(Known(), describe).encode([begin, truncate, commit]).to_pylist()
    assert [row["relation"] for row in rows if row["kind"] == Kind.TRUNCATE] == [7, 8]


def test_a_position_just_after_a_fresh_page_header_is_the_page_s_start() -> None:
    page = 8192
    assert end_of_records(Lsn(5 * page + 24), page) == 5 * page
    assert end_of_records(Lsn(5 * page + 40), page) == 5 * page
    assert end_of_records(Lsn(5 * page + 25), page) == 5 * page + 25
