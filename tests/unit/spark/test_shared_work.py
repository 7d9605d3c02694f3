"""Who does work that is shared out."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tailrace.errors import TransientError
from tailrace.spark import sharing
from tailrace.spark.session import LazySession
from tailrace.spark.sharing import executors, in_threads, is_for_executors


def test_results_come_in_the_order_of_the_items_whoever_ends_first() -> None:
    """The first item ends when the second has: they are worked on at the same time."""
    second_ended = threading.Event()

    def work(item: int) -> int:
        if item == 0:
            assert second_ended.wait(20)
        else:
            second_ended.set()
        return 10 * item

    assert in_threads(range(5), 2, work) == [0, 10, 20, 30, 40]


def test_an_error_is_raised_when_what_had_begun_has_ended_and_nothing_more_is_begun() -> None:
    begun: list[int] = []
    both = threading.Barrier(2, timeout=20)

    def work(item: int) -> None:
        begun.append(item)
        both.wait()
        raise TransientError(f"item {item}")

    with pytest.raises(TransientError, match="item"):
        in_threads(range(9), 2, work)
    assert sorted(begun) == [0, 1]


def test_one_thread_is_the_one_that_asks() -> None:
    assert in_threads("ab", 1, lambda _: threading.current_thread()) == [threading.current_thread()] * 2


@pytest.mark.parametrize(
    ("master", "expected"),
    [("local[2]", False), ("local[4]", False), ("local[5]", True), ("spark://there:7077", True)],
)
def test_executors_do_what_is_large_on_a_cluster_and_with_many_cores(master: str, expected: bool) -> None:
    assert is_for_executors(LazySession(lambda: pytest.fail("not needed"), master=master)) is expected


def test_until_spark_has_started_threads_do_it() -> None:
    class Session:
        class sparkContext:  # noqa: N801  as Spark has it
            master = "spark://there:7077"

    started: Any = Session()
    assert sharing.at_once_max(LazySession(lambda: started, master="spark://there:7077")) is not None
    assert executors(LazySession(lambda: started, master="spark://there:7077")) is None
    assert executors(LazySession(lambda: started, started)) is started
    assert sharing.at_once_max(LazySession(lambda: started, started)) is None
