"""Bringing a lake to a point of its source: by waiting for the sync that runs, or else by running one."""

from __future__ import annotations

import glob
import time
from contextlib import suppress

from tailrace.connector.connector import Connector
from tailrace.engine.door import Engine
from tailrace.errors import DefiniteError, TailraceError
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.position import SourcePosition
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings, VerifySettings
from tailrace.source.door.source import Source
from tailrace.verify.events import Tell, WaitsFor

POLL_SECONDS = 0.1


class LakeCatchUp:
    """For one lake. A sync that stops while we wait for it is replaced by one of ours, and ours gives way to one that
    another process has started. Nothing is copied or followed that the lake does not follow anyway."""

    def __init__(self, home: LakeHome, source: Source, engine: Engine, tell: Tell, settings: VerifySettings) -> None:
        self._home = home
        self._source = source
        self._engine = engine
        self._tell = tell
        self._settings = settings
        self._reader: LogReader | None = None

    def to_the_present(self) -> None:
        """Until the log has what is committed now, and most of it is published: then little is left to wait for while
        a snapshot is held, and to lay over what is published."""
        target = self._source.now()
        while not self._sync_once():
            if self._is_near(target):
                return
            self._wait_for_sync(target)

    def log_up_to(self, position: SourcePosition) -> None:
        """Until the log has every transaction before `position`."""
        while self._log_ordinal() < position.ordinal:
            if not self._sync_once():
                self._wait_for_sync(position)

    def _is_near(self, target: SourcePosition) -> bool:
        if all(record.state is not TableState.LIVE for record in self._home.tables.load().values()):
            return True  # There is nothing to compare, and no cut will come of waiting.
        if self._log_ordinal() < target.ordinal:
            return False
        cut, reader = self._home.cuts.newest(), self._reader
        assert reader is not None
        # A task holds the changes after the cut while it lays them over a table.
        return cut is not None and reader.bytes_between(cut.seq, reader.head.seq) <= self._settings.sizes.fold_bytes

    def _log_ordinal(self) -> int:
        if self._reader is None:
            if not self._home.has_log:
                return -1
            self._reader = LogReader(self._home.log)
        return self._reader.refresh().ordinal

    def _wait_for_sync(self, target: SourcePosition) -> None:
        holder = self._home.holder()
        sync = "a sync runs and" if holder is None else f"the running sync (process {holder})"
        message = f"waiting until {sync} is at {self._source.format(target)}"
        self._tell(WaitsFor(message))
        time.sleep(POLL_SECONDS)

    def _sync_once(self) -> bool:
        """One run of our own to the present. False when another process has the lake, or will have it."""
        if self._settings.is_watching or self._home.holder() is not None:
            return False
        connector = Connector(self._guest(), self._source, self._engine)
        connector.subscribe(self._tell)
        connector.start()
        try:
            return connector.wait()
        except DefiniteError:
            if self._home.holder() is not None:
                return False
            raise
        finally:
            connector.stop()
            with suppress(TailraceError):
                connector.wait()

    def _guest(self) -> ConnectorSettings:
        """The lake does not know by which patterns its tables were chosen, only which it follows. Of one that is gone
        from the source the connector says so."""
        record = self._home.source()
        assert record is not None
        known = [table for table, each in self._home.tables.load().items() if each.state is not TableState.REMOVED]
        tables = tuple(glob.escape(str(table)) for table in known)
        if not self._source.describe(known):
            raise DefiniteError(
                f"{self._home.lake} follows no table that the source has", "run tailrace sync so that it chooses some"
            )
        return ConnectorSettings(self._home.lake, tables, format=record.format, once=True, is_guest=True)
