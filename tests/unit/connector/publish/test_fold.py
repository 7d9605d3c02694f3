"""A table's changes, folded in one task or dealt out to many: the states are those of a Tail of all of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.doors.one_thread import OneThread
from tests.unit.changes.histories import (
    TINY,
    History,
    assert_as_a_tail,
    fold_of,
    histories,
    logged,
    of_keys,
)
from tests.unit.changes.server import Step
from tests.unit.log.records import in_memory

from tailrace.changes.folding import look_of, looked_at
from tailrace.engine.dividing import TooLargeError, work_through
from tailrace.engine.door import Job

JOB = Job("publish", "here")


@given(histories, st.integers(1, 7))
def test_whole_and_divided_come_to_what_a_tail_of_all_changes_comes_to(history: History, cores: int) -> None:
    with in_memory() as folder:
        fold = fold_of(logged(Path(folder), history), history)
        if fold is None:
            assert history.sent == []
            return
        assert_as_a_tail(fold.whole(), fold)
        assert len(fold.changes.ranges) == -(-len(history.sent) // 3), "a part of the range for every transaction"
        assert_as_a_tail(fold.divided(OneThread(cores, travels=True), JOB), fold)


def moved(*numbers: int) -> list[Step]:
    """A row that goes from key to key, and leaves its large value out each time."""
    steps = pairwise(numbers)
    return [Step("move", (float(old), "x"), (float(new), "x"), True, False, True, False) for old, new in steps]


def test_rows_that_moved_are_looked_for_first_and_then_meet_in_one_task(tmp_path: Path) -> None:
    """However long the chain, and though each of its links is in another part of the range."""
    begin = [Step("put", (0.0, "x"), (0.0, "x"), False, False, True, False)]
    history = of_keys({(float(n), "x") for n in range(100, 140)}, [*begin, *moved(*range(20)), *moved(120, 20)])
    fold = fold_of(logged(tmp_path, history), history)
    assert fold is not None
    engine = OneThread(cores=4, travels=True)
    found = fold.divided(engine, JOB)
    assert_as_a_tail(found, fold)
    look = look_of([looked_at(fold.changes, part) for part in fold.changes.ranges])
    assert look.codes is not None
    assert look.instead is not None
    assert (len(look.codes), len(set(look.instead.tolist()))) == (22, 2), "two chains"
    parts = len(fold.changes.ranges)
    tasks = 4 * -(-fold.bytes // (4 * TINY.fold_bytes))
    assert engine.done.tasks == 2 * (parts + tasks) + parts, "dealt in vain, looked at, dealt"
    assert {job.description for job in engine.jobs} == {"publish: t"}


def test_where_nothing_moved_and_nothing_was_truncated_changes_are_read_once(tmp_path: Path) -> None:
    put = [Step("put", (float(n), "x"), (0.0, "x"), False, False, True, False) for n in range(50)]
    history = of_keys(set(), put)
    fold = fold_of(logged(tmp_path, history), history)
    assert fold is not None
    engine = OneThread(cores=4, travels=True)
    found = fold.divided(engine, JOB)
    assert_as_a_tail(found, fold)
    assert len(engine.jobs) == 1
    assert len(found.parts) > 4, "many tasks had some"


def test_what_came_before_a_truncate_counts_in_no_task(tmp_path: Path) -> None:
    put = [Step("put", (float(n), "x"), (0.0, "x"), False, False, True, False) for n in range(30)]
    for after in ([], put[:4], [*put[:9], None]):
        history = of_keys(set(), [*put, None, *put[3:], None, *after])
        folder = tmp_path / str(len(after))
        folder.mkdir()
        fold = fold_of(logged(folder, history), history)
        assert fold is not None
        assert_as_a_tail(fold.divided(OneThread(travels=True), JOB), fold)
        assert_as_a_tail(fold.whole(), fold)


def test_a_fold_whose_changes_are_too_large_once_they_are_decoded_is_divided(tmp_path: Path) -> None:
    history = of_keys(set(), [Step("put", (1.0, "x"), (0.0, "x"), False, False, True, False)])
    fold = fold_of(logged(tmp_path, history), history)
    assert fold is not None
    fold = replace(fold, sizes=replace(TINY, decoded_bytes_max=10))
    with pytest.raises(TooLargeError):
        fold.whole()
    engine = OneThread(travels=True)
    (found,) = work_through(engine, JOB, [fold], fold.bytes, lambda error: False)
    assert found.result is not None
    assert_as_a_tail(found.result, fold)
    assert [job.description for job in engine.jobs] == ["publish", "publish: t"]
