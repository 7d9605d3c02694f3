"""Streamed and prepared transactions as log records: any interleaving of them, and bytes that no server may send."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.log.records import in_memory, open_log, played
from tests.unit.source.postgres.stream.test_stream import data, describe, keepalive, transaction

from tailrace.errors import DefiniteError, GapError
from tailrace.log.files.layout import segment_path
from tailrace.log.reader import LogReader
from tailrace.log.verify import verify
from tailrace.model.kind import Kind
from tailrace.source.postgres.stream.encoding.announced_shapes import Described
from tailrace.source.postgres.stream.encoding.commits import Known
from tailrace.source.postgres.stream.encoding.encoder import StreamEncoder
from tailrace.source.postgres.stream.inbox import Messages
from tailrace.source.postgres.values.messages import Relation

RELATION = b"public\0t\0d" + struct.pack(">H", 1) + b"\1id\0" + struct.pack(">Ii", 23, -1)


def relation(sub_xid: int | None = None, oid: int = 7) -> bytes:
    return data(0, b"R" + _xid(sub_xid) + struct.pack(">I", oid) + RELATION)


def row(lsn: int, content: bytes, sub_xid: int | None = None, oid: int = 7) -> bytes:
    return data(lsn, b"I" + _xid(sub_xid) + struct.pack(">I", oid) + b"N" + content)


def _xid(sub_xid: int | None) -> bytes:
    return b"" if sub_xid is None else struct.pack(">I", sub_xid)


def start(xid: int, is_first: bool = False) -> bytes:
    return data(1, struct.pack(">cIB", b"S", xid, is_first))


def stop() -> bytes:
    return data(1, b"E")


def stream_commit(xid: int, lsn: int) -> bytes:
    return data(lsn, struct.pack(">cIBQQq", b"c", xid, 0, lsn, lsn + 3, 0))


def abort(xid: int, sub_xid: int) -> bytes:
    return data(1, struct.pack(">cII", b"A", xid, sub_xid))


def prepared(tag: bytes, xid: int, lsn: int) -> bytes:
    flags = b"" if tag == b"b" else b"\0"
    return data(lsn, tag + flags + struct.pack(">QQqI", lsn, lsn + 2, 0, xid) + b"gid\0")


def rollback_prepared(xid: int, lsn: int) -> bytes:
    return data(lsn, b"r\0" + struct.pack(">QQqqI", lsn, lsn + 2, 0, 0, xid) + b"gid\0")


def logical_message(lsn: int, is_transactional: bool, sub_xid: int | None = None) -> bytes:
    body = struct.pack(">BQ", is_transactional, lsn) + b"prefix\0" + struct.pack(">I", 3) + b"abc"
    return data(lsn, b"M" + _xid(sub_xid) + body)


class World:
    """A server with a few sessions: what it sends, and what was committed, in order."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.messages: list[bytes] = []
        self.committed: list[list[bytes]] = []
        self._open: dict[int, dict[int, list[bytes]]] = {}
        self._lsn = 1000
        self._xid = 10
        self._number = 0

    def run(self, steps: int) -> World:
        for _ in range(steps):
            self._lsn += 10
            action = self._chance.choice([self._whole, self._part, self._part, self._part, self._abort, self._commit])
            action()
            if self._chance.random() < 0.3:
                self.messages.append(keepalive(self._lsn))
        return self

    def _whole(self) -> None:
        self._xid += 1
        count = self._chance.randint(0, 3)
        rows = [self._row() for _ in range(count)]
        begin, *_, commit = transaction(self._lsn, self._xid, 0)
        self.messages += [begin, *(row(self._lsn, each) for each in rows), commit]
        self.committed.append(rows)

    def _part(self) -> None:
        if not self._open or self._chance.random() < 0.2:
            self._xid += 4
            xid, is_first = self._xid - 3, True
            self._open[xid] = {0: [], 1: [], 2: []}
        else:
            xid, is_first = self._chance.choice(list(self._open)), False
        self.messages.append(start(xid, is_first))
        for _ in range(self._chance.randint(0, 3)):
            sub, content = self._chance.choice(list(self._open[xid])), self._row()
            self._open[xid][sub].append(content)
            self.messages.append(row(self._lsn, content, xid + sub))
        self.messages.append(stop())

    def _abort(self) -> None:
        if not self._open:
            return
        xid = self._chance.choice(list(self._open))
        sub = self._chance.choice(list(self._open[xid]))
        self.messages.append(abort(xid, xid + sub))
        if sub == 0:
            del self._open[xid]
        else:
            del self._open[xid][sub]

    def _commit(self) -> None:
        if self._open:
            xid = self._chance.choice(list(self._open))
            kept = [content for rows in self._open.pop(xid).values() for content in rows]
            self.committed.append(sorted(kept))
            self.messages.append(stream_commit(xid, self._lsn))

    def _row(self) -> bytes:
        self._number += 1
        return b"%06d" % self._number


def log_of(path: Path, messages: list[bytes], cut: Callable[[], int], known: Known | None = None) -> None:
    """The log of a stream that comes a few messages at a time."""
    with closing(open_log(path)) as writer:
        writer.abandon_active()
        encoder = StreamEncoder(known or Known(writer.last_commit.ordinal, writer.prepared), describe)
        while messages:
            size = cut()
            writer.append(encoder.encode(Messages.of(messages[:size])))
            writer.flush()
            messages = messages[size:]


def contents(path: Path) -> list[list[bytes]]:
    """The rows of each transaction, as they were committed."""
    found: list[list[bytes]] = [[] for _ in range(LogReader(path).head.seq)]
    for seq, payload in played(path):
        assert payload[:6] == b"I\0\0\0\x07N"
        found[seq - 1].append(payload[6:])
    return [sorted(rows) for rows in found]


@given(st.integers(0, 1 << 32))
def test_whatever_is_streamed_playback_gives_what_was_committed(seed: int) -> None:
    world = World(seed).run(40)
    chance = random.Random(seed)
    with in_memory() as folder:
        log_of(Path(folder) / "log", world.messages, lambda: chance.choice([1, 3, 50]))
        assert contents(Path(folder) / "log") == [sorted(rows) for rows in world.committed]


@given(st.integers(0, 1 << 32))
def test_a_stream_that_breaks_off_and_comes_again_from_its_start_adds_nothing_twice(seed: int) -> None:
    world = World(seed).run(40)
    chance = random.Random(seed)
    with in_memory() as folder:
        path = Path(folder) / "log"
        log_of(path, world.messages[: chance.randint(0, len(world.messages))], lambda: chance.choice([1, 3, 50]))
        log_of(path, world.messages, lambda: chance.choice([1, 3, 50]))
        assert contents(path) == [sorted(rows) for rows in world.committed]


@pytest.mark.parametrize("is_settled", [False, True])
def test_a_shape_that_no_other_session_sees_is_told_in_full_when_its_transaction_has_committed(
    is_settled: bool,
) -> None:
    encoder = StreamEncoder(Known(), lambda found: describe(found, is_settled))
    first = encoder.encode(Messages.of([start(5, True), relation(6), row(20, b"a", 6), stop()])).to_pylist()
    assert [(r["kind"], r["sub_xid"]) for r in first] == [(Kind.BEGIN, 0), (Kind.SCHEMA, 6), (Kind.INSERT, 6)]
    assert (b"announced" in first[1]["payload"]) is not is_settled
    last = encoder.encode(Messages.of([stream_commit(5, 100)])).to_pylist()
    shape = [] if is_settled else [(Kind.SHAPE, 5, 7, 1)]
    assert [(r["kind"], r["xid"], r["relation"], r["ordinal"]) for r in last] == [*shape, (Kind.COMMIT, 5, 0, 100)]


def test_a_shape_that_came_with_a_prepared_transaction_is_for_all_unless_it_is_its_own() -> None:
    messages = [prepared(b"b", 9, 200), relation(), prepared(b"P", 9, 200)]
    for is_settled, xid in ((True, 0), (False, 9)):
        encoder = StreamEncoder(Known(), lambda found, settled=is_settled: describe(found, settled))  # type: ignore[misc]
        rows = encoder.encode(Messages.of(messages)).to_pylist()
        assert [(r["kind"], r["xid"]) for r in rows[1:2]] == [(Kind.SCHEMA, xid)]


def test_a_shape_that_only_a_left_out_transaction_announced_comes_before_the_next_one(tmp_path: Path) -> None:
    begin, commit = transaction(500, 9, 0)
    messages = [begin, relation(), commit, *transaction(600, 10, 1)]
    records = StreamEncoder(Known(500), describe).encode(Messages.of(messages))
    assert records["kind"].to_pylist() == [Kind.SCHEMA, Kind.BEGIN, Kind.INSERT, Kind.COMMIT]
    assert records["xid"].to_pylist() == [0, 10, 10, 10]
    writer = open_log(tmp_path)
    writer.append(records)
    writer.flush()
    assert [each.relation for each in LogReader(tmp_path).schemas()] == [7]


def parts(messages: list[bytes], describe_: Callable[[Relation], Described] = describe) -> list[tuple[int, int]]:
    """The tables that are announced in full, however the stream is cut up, each with the one that it is a part of."""
    found = []
    for step in (1, 2, len(messages)):
        encoder = StreamEncoder(Known(50), lambda each: with_part(describe_(each), each))
        batches = [encoder.encode(Messages.of(messages[at : at + step])) for at in range(0, len(messages), step)]
        rows = [each for batch in batches for each in batch.to_pylist() if each["kind"] in (Kind.SCHEMA, Kind.SHAPE)]
        told = [(each["relation"], json.loads(each["payload"])) for each in rows]
        found.append([(oid, fields["part_of"]) for oid, fields in told if fields["definition"] is None])
    assert found[0] == found[1] == found[2]
    return found[0]


def with_part(described: Described, announced: Relation) -> Described:
    return replace(described, schema=replace(described.schema, part_of=announced.part_of))


def test_a_table_whose_changes_come_under_the_number_of_the_one_before_it_is_a_part_of_that() -> None:
    begin, _, end = transaction(100, 9, 1)
    type_ = data(0, b"Y" + struct.pack(">I", 5) + b"public\0mood\0")
    truncate = data(95, struct.pack(">cIBII", b"T", 2, 0, 7, 8))
    assert parts([begin, relation(), type_, relation(oid=8), row(96, b"a"), end]) == [(7, 0), (8, 7)]
    assert parts([begin, relation(), relation(oid=8), row(96, b"a", oid=8), end]) == [(7, 0), (8, 0)], "its own table"
    assert parts([begin, relation(), relation(oid=8), truncate, row(96, b"a"), end]) == [(7, 0), (8, 0)], "a truncate"
    assert parts([begin, relation(), relation(oid=8), end]) == [(7, 0), (8, 0)]
    assert parts([begin, relation(), row(96, b"a"), relation(oid=8), row(97, b"a"), end]) == [(7, 0), (8, 0)]
    after_another = [relation(oid=6), relation(), relation(oid=8), row(96, b"a")]
    assert parts([begin, *after_another, end]) == [(6, 0), (7, 0), (8, 7)]


def test_a_part_that_an_open_transaction_made_is_one_when_that_has_committed() -> None:
    begin, end = [start(9, is_first=True)], [stop(), stream_commit(9, 100)]
    messages = [*begin, relation(9), relation(9, oid=8), row(96, b"a", 9), *end]
    assert parts(messages, lambda each: describe(each, is_settled=each.oid == 7)) == [(7, 0), (8, 7)]


def test_a_part_that_only_a_left_out_transaction_announced_stays_one() -> None:
    begin, _, end = transaction(40, 8, 1)
    known = [begin, relation(), relation(oid=8), row(36, b"a"), end]
    assert parts([*known, *transaction(100, 9, 1)]) == [(7, 0), (8, 7)]


def test_a_prepared_transaction_is_there_from_its_commit_on(tmp_path: Path) -> None:
    messages = [prepared(b"b", 9, 200), row(190, b"a"), prepared(b"P", 9, 200), *transaction(300, 10, 0)]
    log_of(tmp_path, messages, lambda: 1)
    assert contents(tmp_path) == [[]]
    # The server does not send what it was told is durable; where it does, nothing is there twice.
    log_of(tmp_path, [*messages[:3], prepared(b"K", 9, 400)], lambda: 2)
    assert contents(tmp_path) == [[], [b"a"]]
    with pa.ipc.open_stream(segment_path(tmp_path, 0)) as segment:
        assert segment.read_all()["kind"].to_pylist().count(Kind.INSERT) == 1
    log_of(tmp_path, [*messages[:3], prepared(b"K", 9, 400)], lambda: 2)
    assert contents(tmp_path) == [[], [b"a"]]


def test_a_streamed_transaction_that_is_prepared_and_rolled_back_leaves_nothing(tmp_path: Path) -> None:
    streamed = [start(9, True), row(190, b"a", 9), stop(), prepared(b"p", 9, 200)]
    log_of(tmp_path, streamed, lambda: 1)
    assert open_and_close(tmp_path) == {9: 200}
    log_of(tmp_path, [rollback_prepared(9, 300), *transaction(400, 10, 0)], lambda: 1)
    assert contents(tmp_path) == [[]]
    assert open_and_close(tmp_path) == {}


def open_and_close(path: Path) -> dict[int, int]:
    writer = open_log(path)
    writer.close()
    return dict(writer.prepared)


def test_the_end_of_a_prepared_transaction_that_the_log_lacks_is_an_error() -> None:
    with pytest.raises(GapError, match="was prepared before, and the log lacks what it changed"):
        StreamEncoder(Known(), describe).encode(Messages.of([prepared(b"K", 9, 400)]))
    assert StreamEncoder(Known(400), describe).encode(Messages.of([prepared(b"K", 9, 400)])).num_rows == 0


def test_messages_are_records_and_those_outside_transactions_are_positions_too() -> None:
    begin, commit = transaction(500, 9, 0)
    inside = [start(5, True), logical_message(20, True, 6), stop()]
    messages = [logical_message(10, False), *inside, begin, logical_message(499, True), commit]
    rows = StreamEncoder(Known(), describe).encode(Messages.of(messages)).to_pylist()
    found = [(r["kind"], r["xid"], r["sub_xid"], r["ordinal"]) for r in rows]
    assert found[:2] == [(Kind.MESSAGE, 0, 0, 10), (Kind.KEEPALIVE, 0, 0, 11)]
    assert [each for each in found[2:] if each[0] != Kind.BEGIN] == [
        (Kind.MESSAGE, 5, 6, 20),
        (Kind.MESSAGE, 9, 0, 499),
        (Kind.COMMIT, 9, 0, 500),
    ]
    assert len({r["payload"][:2] + r["payload"][10:] for r in rows if r["kind"] == Kind.MESSAGE and r["xid"]}) == 1


WRONG = {
    "a change outside": [row(1, b"a")],
    "a shape outside": [relation()],
    "a block within a block": [start(5, True), start(6, True)],
    "a part of an unknown transaction": [start(5)],
    "a commit of an unknown one": [stream_commit(5, 10)],
    "a stop outside": [stop()],
    "a commit within a streamed block": [start(5, True), transaction(10, 5, 0)[1]],
    "another commit than announced": [transaction(10, 5, 0)[0], transaction(11, 5, 0)[1]],
    "a prepare of another": [prepared(b"b", 9, 200), prepared(b"P", 8, 200)],
    "a short streamed change": [start(5, True), data(1, b"I" + bytes(6))],
    "an unknown tag": [data(1, b"?")],
    "an empty message": [b""],
    "not of this protocol": [b"x" + bytes(40)],
    "a keepalive cut short": [keepalive(5)[:-1]],
}


@pytest.mark.parametrize("name", WRONG)
def test_what_may_not_stand_where_it_stands_is_refused(name: str) -> None:
    with pytest.raises(DefiniteError, match="not in pgoutput's format"):
        StreamEncoder(Known(), describe).encode(Messages.of(WRONG[name]))


@given(st.integers(0, 1 << 32), st.data())
def test_damaged_messages_are_an_error_or_leave_a_sound_log(seed: int, draw: st.DataObject) -> None:
    """Whatever comes is refused with a hint, or is what some server could have sent: never a crash."""
    chance = random.Random(seed)
    messages = World(seed).run(12).messages
    begin, commit = transaction(5000, 9000, 0)
    messages += [begin, relation(), logical_message(4999, True), commit, logical_message(5010, False)]
    messages += [prepared(b"b", 9001, 5020), prepared(b"P", 9001, 5020), prepared(b"K", 9001, 5030)]
    for _ in range(draw.draw(st.integers(1, 3))):
        at = chance.randrange(len(messages))
        messages[at] = damaged(messages[at], chance)
    with in_memory() as folder:
        path = Path(folder) / "log"
        # The log's own refusal is a ValueError: nothing of the batch was taken.
        with suppress(DefiniteError, ValueError):
            log_of(path, messages, lambda: chance.choice([1, 3, 50]), Known())
        open_log(path).close()
        assert verify(path).problems == []
        assert len({seq for seq, _ in played(path)}) <= LogReader(path).head.seq


def damaged(message: bytes, chance: random.Random) -> bytes:
    at = chance.randrange(len(message) + 1)
    match chance.randrange(4):
        case 0:
            return message[:at]
        case 1:
            return message + chance.randbytes(chance.randint(1, 9))
        case 2:
            return message[:at] + message[at + chance.randint(1, 8) :]
        case _:
            return message[:at] + chance.randbytes(chance.randint(1, 4)) + message[at + 1 :]
