"""Work that fits a task, and work that does not.

Small pieces are put together, as many tasks of about the same size as there are cores: one job for all of them. What is
larger than a task's share is divided: read in parts, dealt out by key, folded, in a job of its own.

    orders 3 MiB  lines 90 MiB  items 1 MiB  users 2 MiB      share 48 MiB, two cores
    map      [orders]  [items, users]
    shuffle  lines: 6 parts read ─ dealt out by key ─ 2 folded

What a piece weighs is an estimate. One that turns out too large while it is worked on says so (`TooLargeError`), and is
divided then.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, Generic, Protocol, TypeVar

from tailrace.engine.door import Engine, Job
from tailrace.errors import TailraceError, passing, unexpected

LARGE_AT_ONCE = 4
"""How many large pieces are divided at the same time."""

Result = TypeVar("Result")
Found_co = TypeVar("Found_co", covariant=True)
Weighed = TypeVar("Weighed")


class TooLargeError(Exception):
    """A piece is larger than a task should hold. Nothing of it counts."""


class Piece(Protocol[Found_co]):
    """One table's part of some work. Travels to tasks."""

    @property
    def table(self) -> str: ...

    @property
    def bytes(self) -> int:
        """About how much it is, in what `share_bytes` of a job counts."""
        ...

    def whole(self) -> Found_co:
        """All of it, in one task. `TooLargeError` if it is too large for that."""
        ...


class DivisiblePiece(Piece[Found_co], Protocol[Found_co]):
    """One that may be larger than a task's share."""

    def divided(self, engine: Engine, job: Job) -> Found_co:
        """All of it, by jobs of its own."""
        ...


@dataclass(frozen=True)
class Outcome(Generic[Result]):
    """What became of a piece: its result, or the error that is its table's."""

    result: Result | None
    error: TailraceError | None = None
    is_too_large: bool = False


def work_through(
    engine: Engine,
    job: Job,
    pieces: Sequence[DivisiblePiece[Result]],
    share_bytes: int,
    raise_: Callable[[BaseException], bool],
    ended: Callable[[int, Outcome[Result]], None] = lambda number, outcome: None,
) -> list[Outcome[Result]]:
    """Each piece's outcome, in their order. `raise_` says which errors concern more than one table: they are raised.
    `ended` is told each outcome with the number of its piece, when it is there, by any thread."""
    small = [number for number, piece in enumerate(pieces) if piece.bytes <= share_bytes]
    outcomes = dict(zip(small, side_by_side(engine, job, [pieces[n] for n in small], raise_), strict=True))
    large = [n for n in range(len(pieces)) if n not in outcomes or outcomes[n].is_too_large]
    for number, outcome in outcomes.items():
        if not outcome.is_too_large:
            ended(number, outcome)

    def divide(number: int) -> Outcome[Result]:
        piece = pieces[number]
        outcome = attempted(piece.table, lambda: piece.divided(engine, job), raise_)
        ended(number, outcome)
        return outcome

    if large:
        with ThreadPoolExecutor(min(len(large), LARGE_AT_ONCE), "divide") as pool:
            outcomes |= dict(zip(large, pool.map(divide, large), strict=True))
    return [outcomes[number] for number in range(len(pieces))]


def side_by_side(
    engine: Engine,
    job: Job,
    pieces: Sequence[Piece[Result]],
    raise_: Callable[[BaseException], bool],
    tasks_max: int | None = None,
) -> list[Outcome[Result]]:
    """Each piece's outcome, in their order: one job, as many tasks of about the same size as there are cores."""
    if not pieces:
        return []
    tasks = min(engine.cores, tasks_max or engine.cores)
    shares = balanced(range(len(pieces)), lambda number: pieces[number].bytes, tasks)
    try:
        found = engine.map(job, [[pieces[number] for number in share] for share in shares], _each)
    except TailraceError:
        raise
    except Exception as error:
        if raise_(error):
            raise
        # A task died, again and again: each piece alone, so that it is known which one kills it.
        return [_alone(engine, job, piece, raise_) for piece in pieces]
    outcomes: dict[int, Outcome[Result]] = {}
    for share, results in zip(shares, found, strict=True):
        outcomes |= dict(zip(share, results, strict=True))
    for outcome in outcomes.values():
        if outcome.error is not None and raise_(outcome.error):
            raise outcome.error
    return [outcomes[number] for number in range(len(pieces))]


def _alone(engine: Engine, job: Job, piece: Piece[Result], raise_: Callable[[BaseException], bool]) -> Outcome[Result]:
    named = replace(job, description=f"{job.description}: {piece.table}")
    done = attempted(piece.table, lambda: engine.map(named, [[piece]], _each)[0][0], raise_)
    return done.result or Outcome(None, done.error)


def _each(pieces: Sequence[Piece[Result]]) -> list[Outcome[Result]]:
    """In a task: one after another. What one fails with is its own."""
    return [attempted(piece.table, piece.whole, lambda error: False) for piece in pieces]


def attempted(table: str, work: Callable[[], Result], raise_: Callable[[BaseException], bool]) -> Outcome[Result]:
    """What comes of some work for one table."""
    try:
        return Outcome(work())
    except TooLargeError:
        return Outcome(None, is_too_large=True)
    except TailraceError as error:
        if raise_(error):
            raise
        return Outcome(None, error)
    except Exception as error:
        if raise_(error):
            raise
        return Outcome(None, passing(error, table) or unexpected(error, table))


def balanced(items: Iterable[Weighed], bytes_of: Callable[[Weighed], int], shares: int) -> list[list[Weighed]]:
    """The items in at most this many shares, none empty, of about the same weight: the heaviest are placed first."""
    ordered = sorted(items, key=bytes_of, reverse=True)
    # Of shares that weigh the same, the one with the fewest items comes first: items may weigh nothing.
    heap: list[tuple[int, int, int, list[Any]]] = [(0, 0, number, []) for number in range(min(shares, len(ordered)))]
    for item in ordered:
        weight, count, number, share = heapq.heappop(heap)
        share.append(item)
        heapq.heappush(heap, (weight + bytes_of(item), count + 1, number, share))
    return [share for *_, share in sorted(heap, key=lambda each: each[2])]
