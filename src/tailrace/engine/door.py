"""The door to an engine: where rows are worked on.

Whatever reads, decodes, compacts, writes or compares rows for a connector is handed in here, and runs in a task. Who
calls plans on metadata and takes small results back: it never holds a row. The package has one engine, Spark.

A task may run twice, because a process died or was slow. What it writes therefore has a name of its own, and counts
only when the result that names it has been taken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tailrace.errors import DefiniteError

Item = TypeVar("Item")
Result = TypeVar("Result")
Split = Callable[[Item], Iterable[tuple[int, bytes]]]
"""Deals out an item: blobs, each with the number of the task that it is for."""
Fold = Callable[[Iterable[bytes]], Result]
"""What becomes of the blobs that were dealt to one task."""


class EngineError(DefiniteError):
    """There is no engine to work with, or it has died: no table is to blame."""


class CancelledWorkError(EngineError):
    """The work was broken off because someone asked for that."""


@dataclass(frozen=True)
class Job:
    """What a person reads about some work, in Spark's own pages and in ours."""

    description: str
    """Such as "publish 5 tables, transactions 101-150"."""
    group: str
    """Who can stop it and ask how far it is: one connector and one piece of its work."""


@dataclass(frozen=True)
class WorkDone:
    """What an engine has done since it was made."""

    jobs: int = 0
    tasks: int = 0
    seconds: float = 0.0


NO_WORK = WorkDone()


class Engine(Protocol):
    """Any thread. Functions, items and results can be pickled; an error of ours is raised here as it was there."""

    @property
    def cores(self) -> int:
        """How many tasks run at the same time. On a cluster, as many as it has given us so far."""
        ...

    def map(
        self, job: Job, items: Sequence[Item], work: Callable[[Item], Result], tasks: int | None = None
    ) -> list[Result]:
        """One result an item, in their order. A task takes one item, or with `tasks` neighbours one after another."""
        ...

    def shuffle(
        self, job: Job, items: Sequence[Item], split: Split[Item], tasks: int, fold: Fold[Result]
    ) -> list[Result]:
        """Deal each item out to tasks, this many, and fold what each was dealt: one result for each that was dealt
        anything, in their order."""
        ...

    def start_soon(self) -> None:
        """Get ready beside other work: some will come."""
        ...

    def await_ready(self) -> None:
        """Returns when work would begin at once: for whoever is about to hold something of the source's meanwhile."""
        ...

    def cancel(self, group: str) -> None:
        """Break off the jobs of a group; who waits for one gets a `CancelledWorkError`. Returns at once."""
        ...

    def tasks_done(self, group: str) -> tuple[int, int]:
        """Of the group's jobs that are known still: how many tasks have ended, and how many there are."""
        ...

    @property
    def done(self) -> WorkDone: ...

    def __enter__(self) -> Engine: ...

    def __exit__(self, *_: object) -> None: ...


def call(work: Callable[[], Result]) -> Result:
    """For `map`, where the items are functions."""
    return work()
