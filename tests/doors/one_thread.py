"""An engine of one thread: a second implementation of the door. Everything is pickled as it would be on its way to a
task, so what cannot travel fails here too."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pickle import loads
from typing import Any

from pyspark import cloudpickle

from tailrace.engine.door import Fold, Job, Split, WorkDone

_dumps: Callable[[Any], bytes] = cloudpickle.dumps


class OneThread:
    """Implements `Engine`. `travels` says whether work is pickled: what a test observes in its own process is not."""

    def __init__(self, cores: int = 2, *, travels: bool = False) -> None:
        self.cores = cores
        self.jobs: list[Job] = []
        self._travels = travels
        self._tasks = 0
        self._cancelled: set[str] = set()

    @property
    def done(self) -> WorkDone:
        return WorkDone(len(self.jobs), self._tasks)

    def map(self, job: Job, items: Sequence[Any], work: Callable[[Any], Any], tasks: int | None = None) -> list[Any]:
        self._begin(job, min(tasks or len(items), len(items)))
        return [self._moved(self._moved(work)(self._moved(item))) for item in items]

    def shuffle(self, job: Job, items: Sequence[Any], split: Split[Any], tasks: int, fold: Fold[Any]) -> list[Any]:
        self._begin(job, len(items) + tasks)
        dealt: list[list[bytes]] = [[] for _ in range(tasks)]
        for task, blob in itertools.chain.from_iterable(self._moved(split)(self._moved(item)) for item in items):
            dealt[task].append(blob)
        return [self._moved(self._moved(fold)(blobs)) for blobs in dealt if blobs]

    def start_soon(self) -> None: ...

    def await_ready(self) -> None: ...

    def cancel(self, group: str) -> None:
        self._cancelled.add(group)

    def tasks_done(self, group: str) -> tuple[int, int]:
        return 0, 0

    def __enter__(self) -> OneThread:
        return self

    def __exit__(self, *_: object) -> None: ...

    def _begin(self, job: Job, tasks: int) -> None:
        if tasks:
            self.jobs.append(job)
            self._tasks += tasks

    def _moved(self, value: Any) -> Any:
        return loads(_dumps(value)) if self._travels else value


class WatchedThread(OneThread):
    """Calls back when the work of a job is done, before whoever gave it the job has its results."""

    def __init__(self, is_done: Callable[[Job], None], cores: int = 2) -> None:
        super().__init__(cores)
        self._is_done = is_done

    def map(self, job: Job, items: Sequence[Any], work: Callable[[Any], Any], tasks: int | None = None) -> list[Any]:
        found = super().map(job, items, work, tasks)
        self._is_done(job)
        return found

    def shuffle(self, job: Job, items: Sequence[Any], split: Split[Any], tasks: int, fold: Fold[Any]) -> list[Any]:
        found = super().shuffle(job, items, split, tasks, fold)
        self._is_done(job)
        return found
