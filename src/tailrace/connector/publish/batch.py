"""Bringing tables to one transaction, in one pass:

    plan     what of the log is each table's, in which shape, over which version    here, from metadata
    work     decode, compact, locate, fill, write: one job for all tables            the engine's tasks
    commit   the files that came back become one version of each table              here

The driver holds no row. What fails for one table is that table's, and the others continue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

from tailrace.changes.decoding import Changes
from tailrace.changes.folding import (
    Folded,
    Look,
    LookFirstError,
    Writers,
    dealt,
    gathered,
    joined,
    look_of,
    looked_at,
    whole,
)
from tailrace.engine.dividing import Outcome, TooLargeError, attempted, work_through
from tailrace.engine.door import Engine, EngineError, Job, call
from tailrace.errors import DamageError, LeaseLostError, TailraceError
from tailrace.failpoint import failpoint
from tailrace.lake.door import ConflictError, Draft, Rewrite
from tailrace.log.reader import LogReader
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId, TableSchema
from tailrace.settings import TaskSizes

T = TypeVar("T")

ATTEMPTS = 5
"""How often a table is published again that another writer rearranged meanwhile."""


@dataclass(frozen=True)
class Batch:
    """Finished transactions that tables are brought to the last of, as the log's index tells of them: read once."""

    reader: LogReader
    upto: int
    position: SourcePosition
    """Where the last of them committed."""
    weights: Mapping[int, int]
    """About how much of the log is each touched table's, by the table's number."""

    @classmethod
    def read(cls, reader: LogReader, upto: int, position: SourcePosition, tables: Iterable[Batched]) -> Batch:
        """For tables, each from where it stands."""
        starts = {table.relation: table.seq for table in tables if table.seq < upto}
        return cls(reader, upto, position, reader.weights(starts, upto) if starts else {})


@dataclass(frozen=True)
class TableFold:
    """One table's part of a batch, as work for tasks: its changes in the log become parts of a version."""

    table: str
    changes: Changes
    writers: Writers
    bytes: int
    """About how much of the log it is."""
    sizes: TaskSizes

    def whole(self) -> Folded:
        folded = whole(self.changes, self.writers, self.sizes.decoded_bytes_max)
        if folded is None:
            raise TooLargeError
        return folded

    def divided(self, engine: Engine, job: Job) -> Folded:
        job = replace(job, description=f"{job.description}: {self.table}")
        try:
            return self._dealt(engine, job, None)
        except LookFirstError:
            changes = replace(self.changes, ranges=())
            seen = engine.map(job, self.changes.ranges, partial(looked_at, changes))
            return self._dealt(engine, job, look_of(seen))

    def _dealt(self, engine: Engine, job: Job, look: Look | None) -> Folded:
        # Whole rounds: a task that is left over would have every other core wait for it.
        tasks = engine.cores * max(1, -(-self.bytes // (engine.cores * self.sizes.fold_bytes)))
        changes = replace(self.changes, ranges=())
        deal = partial(dealt, changes, tasks, look)
        gather = partial(gathered, changes.shape.target, self.writers, look)
        return joined(engine.shuffle(job, self.changes.ranges, deal, tasks, gather), look)


@dataclass(frozen=True)
class TablePart:
    """What is planned for one table. Without a draft, the transactions do not concern it."""

    draft: Draft | None = None
    fold: TableFold | None = None
    move: TableSchema | None = None
    """The shape to take after them."""


class Batched(Protocol):
    """A table that follows the log."""

    @property
    def table(self) -> TableId: ...

    @property
    def relation(self) -> int: ...

    @property
    def seq(self) -> int:
        """The last transaction it contains."""
        ...

    def plan(self, batch: Batch, sizes: TaskSizes) -> TablePart:
        """Its part of a batch. Raises what is wrong with the table."""
        ...

    def take(self, part: TablePart, folded: Folded, upto: int, rewrite: Callable[[list[Rewrite]], list[Any]]) -> None:
        """Make one version of what tasks have written, if they have written any; the table is at `upto` then."""
        ...

    def make_durable(self) -> None:
        """Let what was published survive a power cut."""
        ...


@dataclass(frozen=True)
class Publisher:
    """Brings tables to a transaction. One thread calls it; tables are committed side by side."""

    engine: Engine
    sizes: TaskSizes
    pool: ThreadPoolExecutor
    group: str

    def bring(self, tables: Sequence[Batched], batch: Batch) -> dict[TableId, TailraceError | None]:
        """What stopped each table, if anything did. Raises what is no one table's."""
        outcomes: dict[TableId, TailraceError | None] = {}
        left = list(tables)
        for _ in range(ATTEMPTS):
            outcomes |= self._bring(left, batch)
            left = [table for table in left if isinstance(outcomes[table.table], ConflictError)]
            if not left:
                break
        return outcomes

    def _bring(self, tables: Sequence[Batched], batch: Batch) -> dict[TableId, TailraceError | None]:
        planned = {table.table: _tried(table.table, partial(table.plan, batch, self.sizes)) for table in tables}
        plans = {table: outcome.result for table, outcome in planned.items() if outcome.result is not None}
        folds = {table: part.fold for table, part in plans.items() if part.fold is not None}
        folded = self._folded(folds, batch.upto)

        def commit(table: Batched) -> TailraceError | None:
            before, done = planned[table.table], folded.get(table.table, Outcome(Folded()))
            if before.result is None or done.result is None:
                return before.error or done.error
            take = partial(table.take, before.result, done.result, batch.upto, partial(self.rewritten, table.table))
            return _tried(table.table, lambda: _durably(table, take)).error

        return dict(zip((table.table for table in tables), self.pool.map(commit, tables), strict=True))

    def _folded(self, folds: Mapping[TableId, TableFold], upto: int) -> dict[TableId, Outcome[Folded]]:
        if not folds:
            return {}
        job = Job(_described(folds, upto), self.group)
        outcomes = work_through(self.engine, job, list(folds.values()), self.sizes.fold_bytes, is_everyones)
        return dict(zip(folds, outcomes, strict=True))

    def rewritten(self, table: TableId, rest: Sequence[Rewrite]) -> list[Any]:
        """What comes of writing some files of a table again, in tasks."""
        return self.engine.map(Job(f"write files of {table} again", self.group), rest, call)


def _durably(table: Batched, take: Callable[[], None]) -> None:
    # The version is there before it survives a power cut; no cut names it before both.
    take()
    table.make_durable()
    failpoint("publish.durable")


def is_everyones(error: BaseException) -> bool:
    """Whether an error concerns more than the table that met it."""
    return isinstance(error, EngineError | DamageError | LeaseLostError)


def _tried(table: TableId, work: Callable[[], T]) -> Outcome[T]:
    return attempted(str(table), work, is_everyones)


def _described(parts: Iterable[TableId], upto: int) -> str:
    names = list(map(str, parts))
    what = names[0] if len(names) == 1 else f"{len(names)} tables"
    return f"publish {what} up to transaction {upto}"
