"""The token that tells work to end."""

from __future__ import annotations

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from tailrace.stop import Stop, Stopped


def test_work_that_is_told_to_stop_raises_at_its_next_check() -> None:
    stop = Stop()
    stop.check()
    stop.set()
    with pytest.raises(Stopped):
        stop.check()


def test_a_stop_is_no_failure_that_could_be_tried_again() -> None:
    assert not issubclass(Stopped, Exception)


def test_a_part_ends_with_the_whole_and_earlier_on_its_own() -> None:
    whole = Stop()
    first, second = Stop(whole), Stop(whole)
    first.set()
    assert (first.is_set(), second.is_set(), whole.is_set()) == (True, False, False)
    part_of_second = Stop(second)
    whole.set()
    assert second.is_set()
    assert part_of_second.is_set()


def test_a_part_that_begins_after_the_stop_does_not_begin() -> None:
    whole = Stop()
    whole.set()
    assert Stop(whole).is_set()


def test_who_waits_for_a_part_notices_the_stop_of_the_whole_at_once() -> None:
    whole = Stop()
    part = Stop(whole)
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(part.wait, 600)
        whole.set()
        assert waiting.result(60)


def test_work_that_waits_for_something_else_is_woken() -> None:
    woken = threading.Event()
    whole = Stop()
    part = Stop(whole)
    part.when_set(woken.set)
    whole.set()
    assert woken.is_set()


def test_a_long_run_remembers_no_part_that_has_gone() -> None:
    whole = Stop()
    for _ in range(100):
        Stop(whole)
    gc.collect()
    last = Stop(whole)
    assert [child() for child in whole._children] == [last]
