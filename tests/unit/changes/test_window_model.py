"""Every interleaving of some small worlds: what a copy by windows shows is the source, or is still to be read.

`make proof` searches many more worlds.
"""

from __future__ import annotations

import pytest
from tests.unit.changes.window_model import Op, Search, Source, World
from tests.unit.changes.window_rules import (
    ForgetfulWindows,
    NaiveWindows,
    PaperWindows,
    SubWindows,
    TrustingWindows,
    Windows,
)

BOTH = frozenset({(1, ("a", "A")), (2, ("b", "B"))})

WORLDS: dict[str, tuple[tuple[Op, ...], ...]] = {
    "updates without the large value": (
        (("savepoint", 1), ("update", 1), ("release", 1)),
        (("savepoint", 1), ("rewrite", 1), ("rollback", 1), ("update", 2)),
        (("savepoint", 1), ("delete", 1), ("rollback", 1), ("savepoint", 2), ("rewrite", 1), ("release", 2)),
    ),
    "a row that is deleted and inserted again": ((("delete", 1),), (("insert", 1), ("update", 1)), (("update", 2),)),
    "a row that moves to the key of a deleted one": ((("delete", 2),), (("move", 1, 2),), (("insert", 1),)),
    "a row that moves past the end and back": ((("move", 1, 3),), (("update", 3),), (("move", 3, 1),)),
    "a row that moves into what was read": ((("delete", 1),), (("move", 2, 1),), (("update", 1),)),
    "rows that change places": ((("move", 1, 3), ("move", 2, 1), ("move", 3, 2)), (("update", 1),), (("delete", 2),)),
    "a truncate": (
        (("savepoint", 1), ("truncate",), ("rollback", 1), ("update", 1)),
        (("savepoint", 1), ("truncate",), ("savepoint", 2), ("insert", 1), ("rollback", 2), ("insert", 2)),
        (("update", 2),),
    ),
}
ON_A_STANDBY: dict[str, tuple[tuple[Op, ...], ...]] = {
    "a row that comes and goes": ((("delete", 1),), (("insert", 1),), (("delete", 1),)),
    "a key that is given again": ((("move", 1, 3), ("insert", 1)), (("update", 3),), (("update", 1),)),
}


@pytest.mark.parametrize("name", WORLDS)
def test_every_version_is_the_source_as_far_as_it_was_read(name: str) -> None:
    search = Search(Source(World(BOTH, WORLDS[name])), Windows())
    assert search.faults() == {}
    assert search.stuck() == []


@pytest.mark.parametrize("name", ON_A_STANDBY)
def test_it_is_so_where_a_transaction_may_be_shown_or_not(name: str) -> None:
    search = Search(Source(World(BOTH, ON_A_STANDBY[name], is_standby=True)), Windows(is_exact=False))
    assert search.faults() == {}
    assert search.stuck() == []


def test_a_window_that_drops_what_was_changed_while_it_was_open_leaves_wrong_rows_for_ever() -> None:
    """That is not enough: a transaction may be logged before the window opens and shown after its rows are read, and a
    change may be less than a row."""
    updates = Search(Source(World(BOTH, WORLDS["updates without the large value"])), NaiveWindows())
    assert updates.faults(at_end=True).keys() == {"a row is stale", "a large value is lost"}
    deletes = Search(Source(World(BOTH, WORLDS["a row that is deleted and inserted again"])), NaiveWindows())
    assert "a deleted row is there" in deletes.faults(at_end=True)


def test_sub_transactions_are_seen_with_their_transaction_and_those_rolled_back_never() -> None:
    """A state need not list them, so a change must not be judged by the number that it carries."""
    world = Source(World(BOTH, WORLDS["updates without the large value"]))
    assert Search(world, SubWindows()).faults(at_end=True).keys() == {"a row is stale"}
    assert "a row is stale" in Search(world, ForgetfulWindows()).faults(at_end=True)


@pytest.mark.parametrize(
    "name", ["updates without the large value", "a row that moves into what was read", "a truncate"]
)
def test_watermarks_bound_a_window_and_its_state_says_what_it_shows(name: str) -> None:
    search = Search(Source(World(BOTH, WORLDS[name], has_watermarks=True)), Windows())
    assert search.faults() == {}
    assert search.stuck() == []


def test_the_order_of_watermarks_and_changes_in_the_log_does_not_say_what_a_window_shows() -> None:
    """A commit that waits for a standby is in the log before the window is opened, and not in its rows. To drop what
    changed between the watermarks loses large values beside."""
    world = World(BOTH, WORLDS["updates without the large value"], has_watermarks=True)
    paper = Search(Source(world), PaperWindows())
    assert paper.faults(at_end=True).keys() == {"a row is stale", "a large value is lost"}
    trusting = Search(Source(world), TrustingWindows())
    assert trusting.faults(at_end=True).keys() == {"a row is stale"}
