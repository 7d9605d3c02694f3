"""Which parts of a table were filled by the transaction that made them, as the log of a stream tells it."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.log.records import open_log
from tests.unit.source.postgres.stream.test_stream import describe, transaction
from tests.unit.source.postgres.stream.test_streamed import abort, prepared, relation, row, start, stop, stream_commit

from tailrace.changes.logged_table import parts_made, parts_told
from tailrace.log.reader import LogReader
from tailrace.model.table import TableSchema
from tailrace.source.postgres.stream.encoding.announced_shapes import Described
from tailrace.source.postgres.stream.encoding.commits import Known
from tailrace.source.postgres.stream.encoding.encoder import StreamEncoder
from tailrace.source.postgres.stream.inbox import Messages
from tailrace.source.postgres.values.messages import Relation

ROOT, PART, MAKER = 7, 8, 9
FILLED = [relation(), relation(oid=PART), row(96, b"a")]
BEGIN, COMMIT = transaction(100, MAKER, 0)
NEXT = transaction(400, 20, 1)


def log(path: Path, messages: list[bytes], *, is_settled: bool = True) -> LogReader:
    """A log that continues with these messages, of a server on which each part is made by who fills it."""

    def made(announced: Relation) -> Described:
        described = describe(announced, is_settled or announced.oid == ROOT)
        made_by = announced.filled_by if announced.part_of else 0
        return replace(described, schema=replace(described.schema, made_by=made_by, part_of=announced.part_of))

    with closing(open_log(path)) as writer:
        writer.abandon_active()
        encoder = StreamEncoder(Known(writer.last_commit.ordinal, writer.prepared), made)
        writer.append(encoder.encode(Messages.of(messages)))
        writer.flush()
    return LogReader(path)


def made_in(reader: LogReader, after: int, upto: int) -> list[int]:
    return [part.relation for part in parts_made(reader, parts_told(reader, ROOT, upto), (after, upto))]


def test_a_part_counts_for_the_batch_that_has_its_maker_and_for_no_other(tmp_path: Path) -> None:
    reader = log(tmp_path, [*transaction(50, 5, 1), BEGIN, *FILLED, COMMIT, *NEXT])
    assert [made_in(reader, seq - 1, seq) for seq in (1, 2, 3)] == [[], [PART], []]
    assert made_in(reader, 0, 3) == [PART]
    assert parts_made(reader, parts_told(reader, PART, 3), (0, 3)) == []


def test_a_part_that_a_transaction_made_which_the_log_has_does_not_count_once_more(tmp_path: Path) -> None:
    sent = [BEGIN, *FILLED, COMMIT]
    log(tmp_path, sent)
    reader = log(tmp_path, [*sent, *NEXT])
    assert [each.schema.made_by for each in reader.parts(ROOT)] == [MAKER, 0]
    assert (made_in(reader, 0, 1), made_in(reader, 1, 2)) == ([PART], [])


@pytest.mark.parametrize("is_settled", [False, True])
def test_a_part_of_a_streamed_transaction_counts_when_that_has_committed(tmp_path: Path, is_settled: bool) -> None:
    filled = [relation(MAKER), relation(MAKER, oid=PART), row(96, b"a", MAKER)]
    again = [relation(11), relation(11, oid=PART), row(97, b"b", 11)]
    messages = [start(MAKER, True), *again, stop(), abort(MAKER, 11), start(MAKER), *filled, stop()]
    reader = log(tmp_path, [*messages, *NEXT, stream_commit(MAKER, 500)], is_settled=is_settled)
    assert (made_in(reader, 0, 1), set(made_in(reader, 1, 2))) == ([], {PART})


@pytest.mark.parametrize("is_settled", [False, True])
def test_a_part_of_a_prepared_transaction_counts_when_that_has_committed(tmp_path: Path, is_settled: bool) -> None:
    messages = [prepared(b"b", MAKER, 200), *FILLED, prepared(b"P", MAKER, 200)]
    reader = log(tmp_path, [*messages, *NEXT, prepared(b"K", MAKER, 500)], is_settled=is_settled)
    assert (made_in(reader, 0, 1), made_in(reader, 1, 2)) == ([], [PART])


def test_a_shape_of_an_older_log_was_made_by_no_one_that_is_known() -> None:
    schema = replace(describe(Relation(PART, "public", "t", "d", ())).schema, made_by=MAKER, part_of=ROOT)
    payload = schema.to_json()
    assert TableSchema.from_json(payload).made_by == MAKER
    older = payload.replace(b'"made_by":9,', b"")
    assert (TableSchema.from_json(older).made_by, TableSchema.from_json(older).part_of) == (0, ROOT)
