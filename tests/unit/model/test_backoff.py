"""Pauses between attempts."""

from __future__ import annotations

from tailrace.model.backoff import Backoff


def test_a_pause_is_twice_the_one_before_up_to_the_longest() -> None:
    backoff = Backoff(0.5, 3.0)
    assert [backoff.seconds(failures) for failures in range(1, 6)] == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_without_a_failure_the_pause_is_the_first_one() -> None:
    assert Backoff(0.5, 3.0).seconds(0) == 0.5


def test_a_longest_pause_holds_from_the_first_failure_on() -> None:
    assert Backoff(1.0, 0.1).seconds(1) == 0.1


def test_something_that_fails_for_years_still_has_a_pause() -> None:
    assert Backoff(0.25, 60.0).seconds(10**9) == 60.0
