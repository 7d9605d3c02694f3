"""An engine that looks, from beside, at how many states a Postgres holds for somebody."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import psycopg
from tests.doors.one_thread import OneThread

from tailrace.engine.door import Job

HELD = """
select count(*) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and backend_type in ('client backend', 'walsender')
  and backend_xmin is not null
"""


class StatesHeld(OneThread):
    """Notes how many there were when it was asked to be ready, and when work came."""

    def __init__(self, dsn: str) -> None:
        super().__init__()
        self.when_ready: list[int] = []
        self.when_working: list[int] = []
        self._dsn = dsn

    def await_ready(self) -> None:
        self.when_ready.append(self._held())

    def map(self, job: Job, items: Sequence[Any], work: Callable[[Any], Any], tasks: int | None = None) -> list[Any]:
        self.when_working.append(self._held())
        return super().map(job, items, work, tasks)

    def _held(self) -> int:
        with psycopg.connect(self._dsn, autocommit=True) as conn:
            found = conn.execute(HELD).fetchone()
        assert found is not None
        return int(found[0])
