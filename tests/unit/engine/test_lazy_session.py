"""When a connector's Spark starts, and who ends it."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.postgres import wait_until

from tailrace.engine.spark.errors import SessionError
from tailrace.engine.spark.session import LazySession


class Session:
    """All that is asked of a session here."""

    def __init__(self) -> None:
        self.stops = 0

    def stop(self) -> None:
        self.stops += 1


def test_one_that_is_started_soon_is_started_once_and_stopped_at_the_end() -> None:
    told: list[str] = []
    made: list[Any] = []

    def start() -> Any:
        made.append(Session())
        return made[-1]

    with LazySession(start, None, lambda: told.append("starting")) as lazy:
        assert not made
        lazy.start_soon()
        assert lazy.get() is lazy.get() is made[0]
        lazy.start_soon()
    assert (told, len(made), made[0].stops) == (["starting"], 1, 1)


def test_the_end_does_not_wait_for_one_that_is_being_started_and_it_is_stopped_all_the_same() -> None:
    made, begun, released = Session(), threading.Event(), threading.Event()

    def start() -> Any:
        begun.set()
        released.wait(20)
        return made

    with LazySession(start) as lazy:
        lazy.start_soon()
        assert begun.wait(20)
    assert made.stops == 0
    released.set()
    wait_until(lambda: made.stops == 1, 20)


def test_none_is_started_for_a_thread_that_comes_after_the_end() -> None:
    made: list[Any] = []

    def start() -> Any:
        made.append(Session())
        return made[-1]

    with LazySession(start) as lazy:
        lazy.get()
    with pytest.raises(SessionError, match="no longer used"):
        lazy.get()
    assert (len(made), lazy.has_ended) == (1, True)


def test_one_that_did_not_start_soon_says_so_to_who_needs_it() -> None:
    tried = threading.Semaphore(0)

    def start() -> Any:
        tried.release()
        raise SessionError("Spark did not start")

    with LazySession(start) as lazy:
        lazy.start_soon()
        assert tried.acquire(timeout=20)
        with pytest.raises(SessionError):
            lazy.get()


def test_the_end_is_quiet_if_the_jvm_has_died_before_it() -> None:
    class Dead(Session):
        def stop(self) -> None:
            super().stop()
            raise ConnectionRefusedError(111, "Connection refused")

    made = Dead()
    started: Any = made
    with LazySession(lambda: started) as lazy:
        lazy.get()
    assert made.stops == 1
