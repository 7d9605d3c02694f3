"""Transactions that are told in parts: prepared long before their commit, and shapes completed at their end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.log.records import Record, batch, begin, change, commit, open_log, played, rollback, schema, transaction

from tailrace.log.reader import LogReader
from tailrace.log.verify import verify
from tailrace.model.kind import Kind


def prepare(xid: int, ordinal: int) -> Record:
    return Record(Kind.PREPARE, xid, payload=b"gid", ordinal=ordinal)


def announced(ordinal: int, *names: str) -> Record:
    return replace(schema(3, *names, xid=7), ordinal=ordinal)


def completed(ordinal: int, *names: str) -> Record:
    return replace(announced(ordinal, *names), kind=Kind.SHAPE)


@pytest.mark.parametrize("with_restart", [False, True])
def test_a_prepared_transaction_survives_what_makes_the_others_forgotten(tmp_path: Path, with_restart: bool) -> None:
    writer = open_log(tmp_path)
    writer.append(batch([begin(7), change(7, b"kept"), begin(8), change(8, b"void"), prepare(7, 50)]))
    writer.flush()
    writer.roll()
    if with_restart:
        writer.close()
        writer = open_log(tmp_path)
    assert writer.prepared == {7: 50}
    writer.abandon_active()
    assert writer.active.keys() == {7}
    writer.append(batch([*transaction(8, 100, b"again"), commit(7, 200)]))
    writer.flush()
    assert sorted(played(tmp_path)) == [(1, b"again"), (2, b"kept")]
    assert writer.prepared == {}
    assert verify(tmp_path).problems == []


def test_a_prepared_transaction_of_a_history_that_was_left_is_forgotten(tmp_path: Path) -> None:
    writer = open_log(tmp_path)
    writer.append(batch([begin(7), change(7, b"void"), prepare(7, 50), begin(8), change(8, b"kept"), prepare(8, 60)]))
    writer.abandon_active(void_ordinal=50)
    assert writer.prepared == {8: 60}
    writer.append(batch([commit(8, 200)]))
    writer.flush()
    assert played(tmp_path) == [(1, b"kept")]


def test_a_prepared_transaction_keeps_its_segments_until_it_ends(tmp_path: Path) -> None:
    writer = open_log(tmp_path)
    writer.append(batch([begin(7), change(7, b"old"), prepare(7, 50), *transaction(8, 100, b"a")]))
    writer.roll()
    writer.append(batch(transaction(9, 200, b"b")))
    writer.roll()
    LogReader(tmp_path).acknowledge("lake", 2)
    assert writer.retain() == []
    writer.append(batch([rollback(7)]))
    writer.roll()
    assert len(writer.retain()) == 3


def test_a_transaction_that_begins_again_is_no_longer_prepared(tmp_path: Path) -> None:
    writer = open_log(tmp_path)
    writer.append(batch([begin(7), prepare(7, 50), begin(7), change(7, b"a")]))
    assert writer.prepared == {}


@pytest.mark.parametrize("flush_every", [1, 3, 100])
@pytest.mark.parametrize("with_restart", [False, True])
def test_a_shape_that_is_completed_holds_from_where_it_was_announced(
    tmp_path: Path, flush_every: int, with_restart: bool
) -> None:
    writer = open_log(tmp_path)
    records = [begin(7), announced(10), change(7, b"a", 3), announced(20, "?"), change(7, b"b", 3)]
    for start in range(0, len(records), flush_every):
        writer.append(batch(records[start : start + flush_every]))
        writer.flush()
    writer.roll()
    if with_restart:
        writer.close()
        writer = open_log(tmp_path)
    writer.append(batch([completed(10, "id"), completed(20, "id", "name"), commit(7, 100)]))
    writer.flush()
    found = [(each.position, each.schema.names) for each in LogReader(tmp_path).schemas()]
    assert found == [(1, ("id",)), (3, ("id", "name"))]
    assert verify(tmp_path).problems == []


def test_a_shape_that_was_never_announced_is_not_taken_for_one(tmp_path: Path) -> None:
    writer = open_log(tmp_path)
    writer.append(batch([begin(7), announced(10, "id"), completed(11, "wrong"), commit(7, 100)]))
    writer.flush()
    assert [each.schema.names for each in LogReader(tmp_path).schemas()] == [("id",)]
