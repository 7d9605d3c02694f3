"""What every engine promises: tests of each run these."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tailrace.engine.door import Engine, Job, call
from tailrace.errors import DefiniteError, TextKeyError

JOB = Job("count", "here")


def by_number(number: int) -> Iterator[tuple[int, bytes]]:
    for each in range(number):
        yield each % 3 * 2, b"%d " % number


def in_order(blobs: Iterable[bytes]) -> list[bytes]:
    return sorted(blobs)


def refuse(item: object) -> None:
    raise TextKeyError.found("public.t", f"the value {item}", 7, [2, "day"])


def refuse_to_deal(item: object) -> Iterator[tuple[int, bytes]]:
    yield 4, b"some are dealt before it"
    refuse(item)


def assert_maps(engine: Engine) -> None:
    """One result an item in their order, however many tasks there are."""
    jobs, tasks = engine.done.jobs, engine.done.tasks
    assert engine.map(JOB, [3, 1, 2], str) == ["3", "1", "2"]
    assert engine.map(JOB, [3, 1, 2], str, 2) == ["3", "1", "2"]
    assert engine.map(JOB, [], str) == []
    assert engine.map(JOB, [lambda: 7], call) == [7]
    assert (engine.done.jobs - jobs, engine.done.tasks - tasks) == (3, 3 + 2 + 1)


def assert_shuffles(engine: Engine) -> None:
    """Each task folds what it was dealt. Those that were dealt nothing have no result."""
    assert engine.shuffle(JOB, [2, 4], by_number, 6, in_order) == [[b"2 ", b"4 ", b"4 "], [b"2 ", b"4 "], [b"4 "]]
    assert engine.shuffle(JOB, [0], by_number, 6, in_order) == []
    assert engine.shuffle(JOB, [], by_number, 6, in_order) == []


def assert_raises(engine: Engine) -> None:
    """An error of ours arrives as it was raised in a task, with all that it knows."""
    works = (
        lambda: engine.map(JOB, [1], refuse),
        lambda: engine.shuffle(JOB, [1], by_number, 6, refuse),
        lambda: engine.shuffle(JOB, [2, 3], refuse_to_deal, 6, in_order),
    )
    for work in works:
        with pytest.raises(DefiniteError, match="the value") as raised:
            work()
        error = raised.value
        assert isinstance(error, TextKeyError)
        assert (error.table, error.relation, list(error.columns)) == ("public.t", 7, [2, "day"])


def die_once(mark: Path) -> None:
    """Kill this worker, unless one has died here already."""
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)


def doubled(mark: Path, number: int) -> int:
    """A worker dies over the 2 once."""
    if number == 2:
        die_once(mark)
    return 2 * number


def folded(mark: Path, blobs: Iterable[bytes]) -> list[bytes]:
    """The first worker dies after it."""
    found = in_order(blobs)
    die_once(mark)
    return found
