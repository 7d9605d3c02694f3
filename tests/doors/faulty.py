"""An engine whose tasks meet a fault: the work of one kind of job is done, and before its result is there, something
dies or hangs. What that attempt wrote must never count."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from tailrace.engine.door import Engine, Fold, Job, Split, WorkDone

LOST_SECONDS = 600.0


class Victim(StrEnum):
    """What a fault strikes."""

    WORKER = "worker"
    """The Python process that runs the task."""
    JVM = "jvm"
    """The JVM above it: Spark itself where it is embedded, an executor on a cluster."""
    DRIVER = "driver"
    """The process that runs the connector."""
    NOBODY = "nobody"
    """The task hangs."""


@dataclass(frozen=True)
class Fault:
    """Strikes the first tasks of jobs whose description begins so."""

    victim: Victim
    where: str
    folder: Path
    """Has a file for each time that it struck."""
    times: int = 1
    driver: int = 0
    table: str | None = None
    """Strikes only tasks that work on this one, where it is given."""

    @property
    def strikes(self) -> int:
        return len(list(self.folder.glob(f"{self.where}-*")))

    def strike(self) -> None:
        """In a task. Each time is taken by one attempt, whatever runs beside it."""
        for number in range(self.times):
            try:
                (self.folder / f"{self.where}-{number}").touch(exist_ok=False)
            except FileExistsError:
                continue
            if self.victim is not Victim.NOBODY:
                os.kill(self._pid(), signal.SIGKILL)
            threading.Event().wait(LOST_SECONDS)

    def _pid(self) -> int:
        match self.victim:
            case Victim.WORKER:
                return os.getpid()
            case Victim.DRIVER:
                return self.driver
            case _:
                return next(each.pid for each in psutil.Process().parents() if each.name() == "java")


class FaultyEngine:
    """Implements `Engine` by another one. Stays when a connector ends, as that one does."""

    def __init__(self, engine: Engine, fault: Fault) -> None:
        self._engine = engine
        self._fault = fault

    @property
    def cores(self) -> int:
        return self._engine.cores

    @property
    def done(self) -> WorkDone:
        return self._engine.done

    def map(self, job: Job, items: Sequence[Any], work: Callable[[Any], Any], tasks: int | None = None) -> list[Any]:
        is_meant = job.description.startswith(self._fault.where)
        return self._engine.map(job, items, partial(_lost, work, self._fault) if is_meant else work, tasks)

    def shuffle(self, job: Job, items: Sequence[Any], split: Split[Any], tasks: int, fold: Fold[Any]) -> list[Any]:
        table = self._fault.table or ""
        is_meant = job.description.startswith(self._fault.where) and job.description.endswith(table)
        fault = replace(self._fault, table=None)
        return self._engine.shuffle(job, items, split, tasks, partial(_lost, fold, fault) if is_meant else fold)

    def start_soon(self) -> None:
        self._engine.start_soon()

    def await_ready(self) -> None:
        self._engine.await_ready()

    def cancel(self, group: str) -> None:
        self._engine.cancel(group)

    def tasks_done(self, group: str) -> tuple[int, int]:
        return self._engine.tasks_done(group)

    def __enter__(self) -> FaultyEngine:
        return self

    def __exit__(self, *_: object) -> None: ...


def _lost(work: Callable[[Any], Any], fault: Fault, item: Any) -> Any:
    result = work(item)
    if fault.table is None or fault.table in [getattr(piece, "table", None) for piece in item]:
        fault.strike()
    return result
