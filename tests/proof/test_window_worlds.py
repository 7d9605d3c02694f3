"""Every interleaving of every three transactions out of some, copied by windows: eight minutes, millions of states."""

from __future__ import annotations

from itertools import combinations

import pytest
from tests.unit.changes.window_model import Op, Search, Source, World
from tests.unit.changes.window_rules import Windows

TRANSACTIONS: list[tuple[Op, ...]] = [
    (("update", 1),),
    (("savepoint", 1), ("delete", 1), ("savepoint", 2), ("insert", 1), ("rollback", 1), ("update", 2)),
    (("update", 3),),
    (("delete", 1),),
    (("savepoint", 1), ("delete", 2), ("savepoint", 2), ("move", 1, 2), ("release", 2), ("release", 1)),
    (("delete", 1), ("insert", 1)),
    (("insert", 1),),
    (("savepoint", 1), ("update", 1), ("rollback", 1), ("savepoint", 2), ("move", 1, 2), ("release", 2)),
    (("move", 1, 3), ("insert", 1)),
    (("move", 3, 1),),
    (("move", 1, 3), ("move", 2, 1), ("move", 3, 2)),
    (("truncate",), ("insert", 1)),
]
BEGINNINGS = {"both": {1: "a", 2: "b"}, "one": {2: "b"}}


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["primary", "standby", "watermarks"])
@pytest.mark.parametrize("beginning", BEGINNINGS)
def test_every_version_is_the_source_as_far_as_it_was_read(beginning: str, kind: str) -> None:
    rows = frozenset((key, (value, value.upper())) for key, value in BEGINNINGS[beginning].items())
    for transactions in combinations(TRANSACTIONS, 3):
        world = World(rows, transactions, is_standby=kind == "standby", has_watermarks=kind == "watermarks")
        search = Search(Source(world), Windows(is_exact=kind != "standby"))
        assert (search.faults(), search.stuck()) == ({}, []), transactions
