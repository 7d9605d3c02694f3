"""How work is put together into tasks and divided among them, and whose errors are whose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.doors.one_thread import OneThread

from tailrace.engine.dividing import Outcome, TooLargeError, balanced, side_by_side, work_through
from tailrace.engine.door import Engine, EngineError, Job
from tailrace.errors import DefiniteError, TailraceError, TransientError

JOB = Job("publish", "here")
SHARE_BYTES = 10


@dataclass(frozen=True)
class Words:
    """A piece whose work is to say how it was done."""

    table: str
    bytes: int
    """What it is thought to be."""
    bytes_really: int = 0
    raises: Exception | None = None

    def whole(self) -> str:
        if self.raises is not None:
            raise self.raises
        if max(self.bytes, self.bytes_really) > SHARE_BYTES:
            raise TooLargeError
        return f"{self.table} whole"

    def divided(self, engine: Engine, job: Job) -> str:
        if self.raises is not None:
            raise self.raises
        found = engine.map(Job(f"divide {self.table}", job.group), range(max(self.bytes, self.bytes_really)), int)
        return f"{self.table} in {len(found)}"


def is_everyones(error: BaseException) -> bool:
    return isinstance(error, EngineError)


def worked(engine: Engine, *pieces: Words) -> list[Outcome[str]]:
    return work_through(engine, JOB, pieces, SHARE_BYTES, is_everyones)


@example([0, 0], 2)
@given(st.lists(st.integers(0, 100), max_size=30), st.integers(1, 6))
def test_shares_have_every_item_once_are_never_empty_and_differ_by_one_item_at_most(
    weights: list[int], shares: int
) -> None:
    items = list(enumerate(weights))
    found = balanced(items, lambda item: item[1], shares)
    assert sorted(item for share in found for item in share) == items
    assert len(found) == min(shares, len(items))
    assert all(found)
    totals = [sum(weight for _, weight in share) for share in found]
    assert max(totals, default=0) - min(totals, default=0) <= max(weights, default=0)


@given(st.lists(st.integers(1, 100), min_size=1, max_size=9), st.integers(1, 3))
def test_the_heaviest_share_is_at_most_a_third_heavier_than_it_must_be(weights: list[int], shares: int) -> None:
    """Against every way to share them out."""
    heaviest = max(map(sum, balanced(weights, int, shares)))
    loads = {(0,) * shares}
    for weight in weights:
        loads = {
            tuple(sorted((*load[:place], load[place] + weight, *load[place + 1 :])))
            for load in loads
            for place in range(shares)
        }
    assert heaviest <= 4 / 3 * min(map(max, loads))


@pytest.mark.parametrize("travels", [False, True])
def test_small_pieces_are_one_job_of_as_many_tasks_as_there_are_cores_and_large_ones_are_divided(travels: bool) -> None:
    engine = OneThread(cores=2, travels=travels)
    found = worked(engine, Words("a", 3), Words("b", 40), Words("c", 1), Words("d", 2))
    assert [each.result for each in found] == ["a whole", "b in 40", "c whole", "d whole"]
    assert [job.description for job in engine.jobs] == ["publish", "divide b"]
    assert engine.done.tasks == 2 + 40


def test_a_piece_that_turns_out_too_large_in_its_task_is_divided_then() -> None:
    engine = OneThread(travels=True)
    found = worked(engine, Words("a", 3), Words("b", 3, bytes_really=12))
    assert [(each.result, each.is_too_large) for each in found] == [("a whole", False), ("b in 12", False)]
    assert [job.description for job in engine.jobs] == ["publish", "divide b"]


def test_each_outcome_is_told_once_when_it_is_there() -> None:
    told: dict[int, str | None] = {}
    engine = OneThread()
    pieces = [Words("a", 3), Words("b", 40), Words("c", 3, bytes_really=12), Words("d", 1, raises=DefiniteError("no"))]

    def ended(number: int, outcome: Outcome[str]) -> None:
        assert number not in told
        told[number] = outcome.result
        assert bool(number in (0, 3)) == (len(engine.jobs) == 1), "small ones are told before a large one is begun"

    work_through(engine, JOB, pieces, SHARE_BYTES, is_everyones, ended)
    assert told == {0: "a whole", 1: "b in 40", 2: "c in 12", 3: None}


def test_where_all_is_large_or_there_is_nothing_no_job_is_begun_for_small_ones() -> None:
    engine = OneThread()
    assert worked(engine) == []
    assert engine.jobs == []
    assert [each.result for each in worked(engine, Words("a", 11), Words("b", 12))] == ["a in 11", "b in 12"]
    assert sorted(job.description for job in engine.jobs) == ["divide a", "divide b"]


@pytest.mark.parametrize("size", [3, 30], ids=["whole", "divided"])
@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        (DefiniteError("row 3 is missing", table="a"), DefiniteError, "row 3 is missing"),
        (TransientError("not now", table="a"), TransientError, "not now"),
        (OSError(28, "No space left on device"), TransientError, "no space left on device"),
        (KeyError("nobody foresaw this"), DefiniteError, "nobody foresaw this"),
    ],
)
def test_an_error_of_one_piece_is_its_tables_and_the_others_are_done(
    size: int, raised: Exception, kind: type[TailraceError], message: str
) -> None:
    for cores in (1, 2):
        found = worked(OneThread(cores, travels=True), Words("a", size, raises=raised), Words("b", 3), Words("c", 30))
        assert [each.result for each in found] == [None, "b whole", "c in 30"]
        error = found[0].error
        assert isinstance(error, kind)
        assert message in error.message
        assert error.table == "a"


@pytest.mark.parametrize("size", [3, 30], ids=["whole", "divided"])
def test_an_error_that_concerns_all_is_raised(size: int) -> None:
    with pytest.raises(EngineError, match="Spark has ended"):
        worked(OneThread(travels=True), Words("a", 3), Words("b", size, raises=EngineError("Spark has ended")))


def test_an_error_of_the_engine_itself_is_raised_and_no_tables() -> None:
    class Gone(OneThread):
        def map(self, job: Job, items: object, work: Callable[..., object], tasks: int | None = None) -> list[object]:
            raise EngineError("Spark has ended")

    for piece in (Words("a", 3), Words("a", 30)):
        with pytest.raises(EngineError):
            worked(Gone(), piece)


def test_no_more_tasks_than_may_read_at_once_are_begun() -> None:
    engine = OneThread(cores=8)
    found = side_by_side(engine, JOB, [Words(str(n), n) for n in range(9)], is_everyones, 3)
    assert [each.result for each in found] == [f"{n} whole" for n in range(9)]
    assert engine.done.tasks == 3
