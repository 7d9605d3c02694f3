"""When a look at the source's tables is due, and when it would find the same."""

from __future__ import annotations

from tailrace.connector.tables.source_check import REST_FACTOR, URGENT_SECONDS, WHOLE_SECONDS, LastLook, LookSchedule
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState

EVERY_SECONDS = 10.0
RECORDS = {TableId("shop", "a"): TableRecord(TableState.LIVE, copy=1, relation=7)}


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


def test_a_look_is_due_at_once_and_then_every_few_seconds() -> None:
    clock = Clock()
    schedule = LookSchedule(EVERY_SECONDS, clock)
    assert schedule.is_due(is_urgent=False)
    schedule.looked()
    clock.seconds += EVERY_SECONDS - 0.1
    assert not schedule.is_due(is_urgent=False)
    clock.seconds += 0.1
    assert schedule.is_due(is_urgent=False)


def test_an_urgent_look_is_due_earlier_but_one_that_costs_much_rests() -> None:
    clock = Clock()
    schedule = LookSchedule(EVERY_SECONDS, clock)
    schedule.looked()
    assert schedule.is_due(is_urgent=True)
    begun = schedule.now()
    clock.seconds += 1.0
    schedule.looked_since(begun)
    clock.seconds += REST_FACTOR - 0.1
    assert not schedule.is_due(is_urgent=True)
    clock.seconds += 0.1
    assert schedule.is_due(is_urgent=True)
    schedule.looked_since(schedule.now())
    clock.seconds += URGENT_SECONDS
    assert schedule.is_due(is_urgent=True)


def test_everything_is_looked_at_from_time_to_time_whatever_the_source_says() -> None:
    clock = Clock()
    schedule = LookSchedule(EVERY_SECONDS, clock)
    assert schedule.is_whole_due
    schedule.looked_at_everything()
    assert not schedule.is_whole_due
    clock.seconds += WHOLE_SECONDS
    assert schedule.is_whole_due


def test_another_look_would_find_the_same_only_under_the_same_mark_and_with_the_same_records() -> None:
    last = LastLook("m1", RECORDS)
    assert last.would_find_the_same("m1", dict(RECORDS))
    assert not last.would_find_the_same("m2", RECORDS)
    assert not last.would_find_the_same("m1", {})
    assert not LastLook("m1").would_find_the_same("m1", RECORDS)
    assert not LastLook(None, RECORDS).would_find_the_same(None, RECORDS)
