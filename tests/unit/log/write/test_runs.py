"""The short way through a batch of whole transactions says the same as the long way."""

from __future__ import annotations

import random
from dataclasses import fields

import numpy as np
import pytest
from tests.unit.log.records import Record, batch, begin, change, commit, keepalive, transaction, undo

from tailrace.log.record import Columns
from tailrace.log.write._runs import Pairs, Runs, _any_records, _whole_transactions


def whole(count: int, seed: int) -> list[Record]:
    chance = random.Random(seed)
    records: list[Record] = []
    for xid in range(1, count + 1):
        changes = [change(xid, b"x" * chance.randrange(9), chance.randint(1, 3)) for _ in range(chance.randrange(6))]
        records += [begin(xid), *changes, commit(xid, xid * 100)]
    return records


def as_lists(runs: Runs) -> dict[str, object]:
    found: dict[str, object] = {}
    for each in fields(runs):
        value = getattr(runs, each.name)
        if isinstance(value, Pairs):
            found[each.name] = (value.run.tolist(), value.value.tolist())
        elif isinstance(value, np.ndarray):
            found[each.name] = value.tolist()
    return found


@pytest.mark.parametrize("seed", range(10))
def test_both_ways_agree_on_whole_transactions(seed: int) -> None:
    records = batch(whole(20, seed))
    for columns in (Columns.of(records), Columns.of(batch([keepalive(1), *whole(20, seed)]).slice(1))):
        short = _whole_transactions(columns)
        assert short is not None
        assert as_lists(short) == as_lists(_any_records(columns))


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
    assert _whole_transactions(Columns.of(batch(records))) is None
