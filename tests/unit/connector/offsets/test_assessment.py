"""Where an edit of an offset leads, and what the source cannot do: decided without asking anyone."""

from __future__ import annotations

import pytest

from tailrace.connector.offsets.assessment import Direction, consequence, reach_faults, wanted_ordinal
from tailrace.model.position import SourcePosition
from tailrace.source.door.offsets import Counted, Served

HERE = {"lsn_commit": 90, "lsn_proc": 100, "lsn": 100}


@pytest.mark.parametrize(
    ("after", "wanted"),
    [
        (HERE, None),
        ({**HERE, "lsn": 150}, 150),
        ({**HERE, "lsn_commit": 150, "lsn": 150}, 150),
        ({"lsn": 50}, 50),
        ({"lsn": 100}, None),
    ],
)
def test_an_edit_leads_to_the_position_that_it_changes(after: dict[str, int], wanted: int | None) -> None:
    assert wanted_ordinal(HERE, after) == (wanted, None)


def test_an_edit_to_two_positions_is_refused() -> None:
    wanted, fault = wanted_ordinal(HERE, {"lsn_commit": 140, "lsn": 150})
    assert wanted is None
    assert fault is not None
    assert (fault.field, fault.rule) == ("offset.lsn_commit", "one-position")


@pytest.mark.parametrize(
    ("target", "rules"),
    [(100, []), (150, []), (200, []), (201, ["written"]), (80, []), (79, ["kept"])],
)
def test_the_source_sends_from_where_it_keeps_changes_to_where_its_log_ends(target: int, rules: list[str]) -> None:
    served = Served(SourcePosition(80), SourcePosition(200))
    assert [fault.rule for fault in reach_faults(target, 100, served, str)] == rules


def test_a_source_that_sends_nothing_says_why() -> None:
    (fault,) = reach_faults(100, 100, Served(None, SourcePosition(200), "there is no slot x"), str)
    assert (fault.rule, "there is no slot x" in fault.message) == ("served", True)


def test_what_follows_is_said_in_numbers() -> None:
    assert consequence(Direction.FORWARD, Counted(2000, is_all=False), ["a.b", "a.c"]) == (
        "at least 2,000 transactions skipped and never logged: the next start copies 2 tables again by windows"
    )
    assert consequence(Direction.FORWARD, Counted(1), ["a.b"]).startswith("1 transaction skipped and never logged")
    assert "unknown number" in consequence(Direction.FORWARD, None, [])
    assert "nothing changes for the lake" in consequence(Direction.BACKWARD, Counted(3), [])
