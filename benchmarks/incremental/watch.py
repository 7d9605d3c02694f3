"""What is looked at from outside while rows are copied: the stream's lag, and how long transactions stay open."""

from __future__ import annotations

import threading
import time
from types import TracebackType

import psycopg

from tailrace.lake.home import LakeHome
from tailrace.model.cut import PublishedCut
from tailrace.source.kinds import source_of

BEATS = "beats"
BEAT_SECONDS = 0.1
LOOK_SECONDS = 0.02
PATIENCE_SECONDS = 120.0
_OPEN = """
select coalesce(max(extract(epoch from clock_timestamp() - xact_start)), 0)::float
from pg_stat_activity
where application_name = 'tailrace' and backend_type = 'client backend' and state <> 'idle'
"""


class _Watch:
    """A thread that runs inside a `with`."""

    def __init__(self) -> None:
        self._end = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()
        if self._error is not None and error is None:
            raise self._error

    def _watch(self) -> None:
        try:
            self._run()
        except BaseException as error:
            self._error = error

    def _run(self) -> None:
        raise NotImplementedError


class Lag(_Watch):
    """Commits to a small table, ten times a second, and sees when the newest cut has each. At the end, waits for the
    cut that has the last one; not while no sync of ours runs, when it only does the same work."""

    def __init__(self, dsn: str, lake: LakeHome, *, waits: bool = True) -> None:
        super().__init__()
        self._waits = waits
        self._dsn = dsn
        self._source = source_of(dsn)
        self._cuts = lake.cuts
        self._mark = (0, 0)
        self._waiting: list[tuple[float, int]] = []
        """When it was committed, and a position right after."""
        self.seconds: list[float] = []

    def _run(self) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            due = time.monotonic()
            while not self._end.wait(LOOK_SECONDS):
                if time.monotonic() >= due:
                    due += BEAT_SECONDS
                    connection.execute(f"insert into {BEATS} default values")
                    self._waiting.append((time.monotonic(), self._source.now().ordinal))
                self._look()
        ended = time.monotonic()
        while self._waits and self._waiting:
            time.sleep(LOOK_SECONDS)
            self._look()
            if time.monotonic() - ended > PATIENCE_SECONDS:
                raise TimeoutError("a commit was not published for minutes")

    def _look(self) -> None:
        cuts = [cut for cut in self._new_cuts() if f"public.{BEATS}" in cut.tables]
        ordinal = max((cut.position.ordinal for cut in cuts), default=0)
        now = time.monotonic()
        self.seconds += [now - at for at, wanted in self._waiting if wanted <= ordinal]
        self._waiting = [(at, wanted) for at, wanted in self._waiting if wanted > ordinal]

    def _new_cuts(self) -> list[PublishedCut]:
        mark = self._cuts.mark
        if mark == self._mark:
            return []
        # Another file has the cuts that are kept; they may have been seen before.
        found = self._cuts.after(self._mark[1]) if mark[0] == self._mark[0] else self._cuts.all()
        self._mark = mark
        return found


class OpenTransactions(_Watch):
    """The longest that one of ours was seen open at the source."""

    def __init__(self, dsn: str) -> None:
        super().__init__()
        self._dsn = dsn
        self.seconds_max = 0.0

    def _run(self) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            while not self._end.wait(LOOK_SECONDS):
                ((seconds,),) = connection.execute(_OPEN).fetchall()
                self.seconds_max = max(self.seconds_max, seconds)
