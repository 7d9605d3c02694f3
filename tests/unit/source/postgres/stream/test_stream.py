"""The stream as log records: order kept, what the log has left out whole, positions only between transactions."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.errors import DefiniteError
from tailrace.model.commit import Commit
from tailrace.model.kind import Kind
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId, TableSchema
from tailrace.source.postgres.server.history import History
from tailrace.source.postgres.server.identity import end_of_records
from tailrace.source.postgres.server.lsn import Lsn
from tailrace.source.postgres.stream.encoding.announced_shapes import Described
from tailrace.source.postgres.stream.encoding.commits import Known
from tailrace.source.postgres.stream.encoding.encoder import StreamEncoder
from tailrace.source.postgres.stream.inbox import Messages
from tailrace.source.postgres.values.messages import Relation

POSTGRES_EPOCH_US = 946_684_800_000_000
MANY = range(1, 9)


def data(lsn: int, payload: bytes) -> bytes:
    return struct.pack(">cQQq", b"w", lsn, lsn, 0) + payload


RELATION = data(0, struct.pack(">cI", b"R", 7) + b"public\0t\0d" + bytes(2))


def keepalive(lsn: int) -> bytes:
    return struct.pack(">cQqB", b"k", lsn, 0, 0)


def transaction(commit_lsn: int, xid: int, changes: int) -> list[bytes]:
    begin = data(commit_lsn - 5, struct.pack(">cQqI", b"B", commit_lsn, 0, xid))
    rows = [data(commit_lsn - 4, struct.pack(">cI", b"I", 7) + bytes([n])) for n in range(changes)]
    return [begin, *rows, data(commit_lsn, struct.pack(">cBQQq", b"C", 0, commit_lsn, commit_lsn + 3, 0))]


def describe(relation: Relation, is_settled: bool = True) -> Described:
    return Described(TableSchema(TableId(relation.namespace, relation.name), relation.oid, (), ()), is_settled)


@given(st.lists(st.integers(0, 4), max_size=8), st.integers(0, 8), st.lists(st.integers(1, 40), min_size=1), st.data())
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
        rows += encoder.encode(Messages.of(messages[:step])).to_pylist()
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


@given(
    st.lists(st.tuples(st.sampled_from("ttkosr"), st.integers(1, 7)), max_size=8), st.integers(0, 4), st.integers(0, 1)
)
def test_messages_that_come_together_make_the_records_that_each_makes_by_itself(
    sent: list[tuple[str, int]], known: int, history: int
) -> None:
    messages: list[bytes] = []
    for number, what in enumerate((what for what, times in sent for _ in range(times)), 1):
        begin, *rows, commit = transaction(100 * number, number, number % 3)
        messages += {
            "t": [begin, *rows, commit],
            "k": [keepalive(100 * number)],
            "o": [begin, data(0, b"O" + bytes(8) + b"origin\0"), *rows, commit],
            # As a server may that sends again, and others' commits lie in between.
            "s": transaction(100 * max(1, number - 2), number, 1),
            "r": [begin, RELATION, *rows, commit],
        }[what]
    of_each, of_all = (StreamEncoder(Known(100 * known, history=History(history)), describe) for _ in range(2))
    expected = [row for message in messages for row in of_each.encode(Messages.of([message])).to_pylist()]
    assert of_all.encode(Messages.of(messages)).to_pylist() == expected


def test_a_shape_that_came_with_what_the_log_has_stands_before_the_transactions_that_follow() -> None:
    begin, *others = transaction(100, 1, 1)
    known = [begin, RELATION, *others]
    new = [message for number in MANY for message in transaction(1000 * number, number, 1)]
    rows = StreamEncoder(Known(100), describe).encode(Messages.of(known + new)).to_pylist()
    assert [row["kind"] for row in rows] == [Kind.SCHEMA, *[Kind.BEGIN, Kind.INSERT, Kind.COMMIT] * len(MANY)]


@pytest.mark.parametrize("wrong", ["commit", "xid", "long begin", "long commit"])
def test_one_wrong_transaction_among_many_is_refused(wrong: str) -> None:
    many = [transaction(100 * number, number, 1) for number in MANY]
    begin, row, commit = many[5]
    many[5] = {
        "commit": [begin, row, transaction(601, 6, 0)[1]],
        "xid": transaction(600, 0, 1),
        "long begin": [begin + b"x", row, commit],
        "long commit": [begin, row, commit + b"x"],
    }[wrong]
    with pytest.raises(DefiniteError, match="not in pgoutput's format"):
        StreamEncoder(Known(), describe).encode(Messages.of([message for each in many for message in each]))


def test_a_commit_carries_its_position_and_time() -> None:
    rows = StreamEncoder(Known(), describe).encode(Messages.of(transaction(500, 9, 1))).to_pylist()
    commit = Commit.from_bytes(rows[-1]["payload"])
    assert commit == Commit(SourcePosition(500, POSTGRES_EPOCH_US), 503)


def test_a_keepalive_inside_a_transaction_says_nothing() -> None:
    begin, row, commit = transaction(500, 9, 1)
    messages = Messages.of([begin, keepalive(499), row, commit, keepalive(600)])
    rows = StreamEncoder(Known(), describe).encode(messages).to_pylist()
    assert [(row["kind"], row["ordinal"]) for row in rows if row["kind"] == Kind.KEEPALIVE] == [(Kind.KEEPALIVE, 600)]


def test_a_truncate_of_several_tables_is_one_record_each() -> None:
    begin, commit = transaction(500, 9, 0)
    truncate = data(499, struct.pack(">cIBII", b"T", 2, 0, 7, 8))
    rows = StreamEncoder(Known(), describe).encode(Messages.of([begin, truncate, commit])).to_pylist()
    assert [row["relation"] for row in rows if row["kind"] == Kind.TRUNCATE] == [7, 8]


def test_a_position_just_after_a_fresh_page_header_is_the_page_s_start() -> None:
    page = 8192
    assert end_of_records(Lsn(5 * page + 24), page) == 5 * page
    assert end_of_records(Lsn(5 * page + 40), page) == 5 * page
    assert end_of_records(Lsn(5 * page + 25), page) == 5 * page + 25
