"""The short way through a batch of whole transactions says the same as the long way."""

from __future__ import annotations

import random
from dataclasses import fields, is_dataclass
from typing import Any

import pytest
from tests.unit.log.records import Record, batch, begin, change, commit, keepalive, transaction, undo

from tailrace.log.files.record import Columns
from tailrace.log.ledger.runs import any_records, whole_transactions


def whole(count: int, seed: int) -> list[Record]:
    chance = random.Random(seed)
    records: list[Record] = []
    for xid in range(1, count + 1):
        changes = [change(xid, b"x" * chance.randrange(9), chance.randint(1, 3)) for _ in range(chance.randrange(6))]
        records += [begin(xid), *changes, commit(xid, xid * 100)]
    return records


def as_lists(value: Any) -> Any:
    if is_dataclass(value):
        # The order may be a slice or the same numbers.
        return {each.name: as_lists(getattr(value, each.name)) for each in fields(value) if each.name != "order"}
    return value.tolist()


@pytest.mark.parametrize("seed", range(10))
def test_both_ways_agree_on_whole_transactions(seed: int) -> None:
    records = batch(whole(20, seed))
    for columns in (Columns.of(records), Columns.of(batch([keepalive(1), *whole(20, seed)]).slice(1))):
        short = whole_transactions(columns)
        assert short is not None
        assert as_lists(short) == as_lists(any_records(columns))


@pytest.mark.parametrize(
    "records",
    [
        [begin(7), change(7, b"a")],
        [change(7, b"a"), commit(7, 100)],
        [begin(7), begin(8), commit(7, 100), commit(8, 200)],
        [begin(7), change(8, b"a"), commit(7, 100)],
        [begin(7), undo(7, 1), commit(7, 100)],
        [keepalive(5), *transaction(7, 100, b"a")],
        [*transaction(7, 100, b"a"), *transaction(7, 200, b"b")],
    ],
)
def test_anything_else_goes_the_long_way(records: list[Record]) -> None:
    assert whole_transactions(Columns.of(batch(records))) is None
