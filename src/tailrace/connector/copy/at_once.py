"""Copies of some tables at once: one full snapshot, made in a thread beside the stream.

The fastest way, but what dies begins again. No table is taken before all are done: they come into cuts together, as of
one commit of the source.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import ClassVar

from tailrace.connector.copy.full_snapshot import FullSnapshot, SnapshotPlan
from tailrace.connector.copy.running_copy import CopyResults, HowToCopy, TableStart
from tailrace.connector.messages import owned
from tailrace.errors import TailraceError
from tailrace.model.copy_progress import TableProgress
from tailrace.model.table import TableId
from tailrace.source.door.values import Problem

CANCEL_SECONDS = 10.0


class AtOnceCopy:
    """Implements `RunningCopy`. It takes tables once and can neither be paused nor cut short."""

    can_pause: ClassVar[bool] = False
    trouble: TailraceError | None = None

    def __init__(self, how: HowToCopy, head_seq: int) -> None:
        """`head_seq` is the log's newest transaction, read before the snapshot is taken, which therefore shows it and
        all before."""
        self._how = how
        self._head_seq = head_seq
        self._tables: Mapping[TableId, TableStart] = {}
        self._snapshot: FullSnapshot | None = None
        self._has_told = False
        self._thread = threading.Thread(target=owned(self._run), name="snapshot", daemon=True)
        self.error: BaseException | None = None

    def add(self, tables: Mapping[TableId, TableStart]) -> None:
        assert self.takes_more
        parts, settings = self._how.parts, self._how.settings
        plan = SnapshotPlan(
            self._how.source,
            parts.stored,
            tables,
            settings.chunk_bytes_max,
            settings.tables_in_parallel,
            settings.readers_max,
            f"tailrace {parts.home.lake} copy",
        )
        self._tables = dict(tables)
        self._snapshot = FullSnapshot(parts.engine, plan, self._how.stop)
        self._thread.start()

    def _run(self) -> None:
        assert self._snapshot is not None
        try:
            self._snapshot.run()
        except BaseException as error:
            self.error = error

    @property
    def takes_more(self) -> bool:
        return self._snapshot is None

    @property
    def tables(self) -> dict[TableId, int]:
        return {table: start.copy for table, start in self._tables.items()}

    @property
    def has_ended(self) -> bool:
        return self._snapshot is not None and not self._thread.is_alive()

    @property
    def waits_for(self) -> Problem | None:
        return self._snapshot.waits_for if self._snapshot is not None else None

    @property
    def needed_after(self) -> int:
        return self._head_seq

    def drop(self, table: TableId) -> None:
        """It is read with the others, and not taken then."""

    def pause(self, tables: Collection[TableId]) -> None:
        """All tables are read under one state of the source, which would have to be held meanwhile."""

    def cut_short(self, tables: Collection[TableId]) -> None:
        """Only copies that keep rows of the copy before can be."""

    def take_results(self) -> CopyResults:
        """Nothing before the end, and then everything, once: a table must not join twice."""
        if self._snapshot is None or not self.has_ended or self._has_told:
            return CopyResults()
        self._has_told = True
        failed = {table: (self._tables[table].copy, error) for table, error in self._snapshot.failed.items()}
        return CopyResults(dict(self._snapshot.landed), failed, shown_seq=self._head_seq)

    def progress(self) -> list[TableProgress]:
        return self._snapshot.progress() if self._snapshot is not None else []

    def cancel(self) -> None:
        if self._snapshot is not None:
            self._snapshot.cancel()
            self._thread.join(CANCEL_SECONDS)
