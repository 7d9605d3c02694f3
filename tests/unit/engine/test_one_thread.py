"""The engine of one thread is an engine: it keeps the door's promises. mypy checks that it has the door's shape."""

from __future__ import annotations

import pytest
from tests.doors.engine_promises import JOB, assert_maps, assert_raises, assert_shuffles
from tests.doors.one_thread import OneThread, WatchedThread

from tailrace.engine.door import Engine

ENGINES: list[Engine] = [OneThread(), OneThread(cores=3, travels=True), WatchedThread(lambda job: None)]


@pytest.mark.parametrize("engine", ENGINES)
def test_it_keeps_the_promises_of_every_engine(engine: Engine) -> None:
    with engine:
        engine.start_soon()
        engine.await_ready()
        assert_maps(engine)
        assert_shuffles(engine)
        assert_raises(engine)
        engine.cancel(JOB.group)
        assert engine.tasks_done(JOB.group) == (0, 0)


def test_what_cannot_travel_fails_where_it_would_have_to() -> None:
    unsendable = (each for each in "ab")
    assert OneThread().map(JOB, [unsendable], list) == [["a", "b"]]
    with pytest.raises(TypeError, match="pickle"):
        OneThread(travels=True).map(JOB, [unsendable], list)
