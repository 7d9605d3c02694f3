"""Copies of tables, made in a thread beside the stream."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from tailrace.connector.copy._full_snapshot import FullSnapshot, SnapshotPlan
from tailrace.connector.messages import owned
from tailrace.connector.publish.applier import LakeParts
from tailrace.model.copy_progress import TableProgress
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord
from tailrace.settings import ConnectorSettings
from tailrace.source.door.source import Database
from tailrace.source.door.values import Problem

CANCEL_SECONDS = 10.0


class RunningCopy:
    """One full snapshot of some tables, under way."""

    def __init__(
        self,
        parts: LakeParts,
        source: Database,
        settings: ConnectorSettings,
        tables: Mapping[TableId, TableRecord],
        head_seq: int,
    ) -> None:
        plan = SnapshotPlan(
            source,
            lambda table: parts.format.table(parts.home.table_path(table)),
            tables,
            settings.chunk_bytes_max,
            settings.tables_in_parallel,
            settings.readers_max,
            f"tailrace {parts.home.path} copy",
        )
        self.tables = frozenset(tables)
        self.snapshot = FullSnapshot(parts.engine, plan)
        self.head_seq = head_seq
        """The log's newest transaction when the copy began: the snapshot shows it and all before."""
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=owned(self._run), name="snapshot", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.snapshot.run()
        except BaseException as error:
            self.error = error

    @property
    def is_done(self) -> bool:
        return not self._thread.is_alive()

    @property
    def waits_for(self) -> Problem | None:
        """What holds it up at the source."""
        return self.snapshot.waits_for

    def progress(self) -> list[TableProgress]:
        return self.snapshot.progress()

    def cancel(self) -> None:
        """Returns when the copy has ended, or after a while: what it waits for may not be ours to end."""
        self.snapshot.cancel()
        self._thread.join(CANCEL_SECONDS)
