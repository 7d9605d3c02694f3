"""A connector that a test drives: started, watched by its events, stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TypeVar

import psutil
from pyspark.sql import SparkSession
from tests.doors.one_thread import OneThread
from tests.postgres import at_work, wait_until

from tailrace.connector.connector import Connector
from tailrace.connector.events import Event, TableChanged
from tailrace.connector.start.capture_process import NAME
from tailrace.engine.door import Engine
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings, TaskSizes
from tailrace.source.door.source import Source

WAIT_SECONDS = 180.0
DIVIDED = TaskSizes(read_bytes=1 << 12, fold_bytes=1 << 16, decoded_bytes_max=0)
"""With these, what a batch has of any table is too large for one task: it is read in parts and dealt out by key."""
E = TypeVar("E")


def connector_of(settings: ConnectorSettings, source: Source, spark: SparkSession | Engine | None = None) -> Connector:
    """With the engine of one thread unless a test brings another: what its source does is seen in this process."""
    return Connector(settings, source, spark if spark is not None else OneThread())


class Running:
    """A connector and what it has told so far. Waits on events, with a deadline."""

    def __init__(self, settings: ConnectorSettings, source: Source, spark: SparkSession | Engine | None = None) -> None:
        self.lake = settings.lake
        self.source = source
        self.events: list[Event] = []
        self._told = threading.Condition()
        self.connector = connector_of(settings, source, spark)
        self.connector.subscribe(self._hear)
        self.connector.start()

    def _hear(self, event: Event) -> None:
        with self._told:
            self.events.append(event)
            self._told.notify_all()

    def wait_for(self, condition: Callable[[], E], seconds: float = WAIT_SECONDS) -> E:
        """Until the condition holds after some event; fails at once if the connector ends before."""
        with self._told:
            is_there = self._told.wait_for(lambda: condition() or self._has_ended(), seconds)
        found = condition()
        if not found:
            self.connector.wait(0)
            why = "ended" if is_there else f"not within {seconds} s; meanwhile {at_work()}"
            raise AssertionError(f"{why}: {self.events[-5:]}")
        return found

    def _has_ended(self) -> bool:
        return self.connector.status().state in ("stopped", "failed")

    def wait_for_state(self, table: str, state: TableState, copy: int = 0) -> None:
        """Until the table has been in this state, in this copy of it or a later one."""
        wanted = TableId(*table.split("."))
        self.wait_for(
            lambda: any(
                isinstance(e, TableChanged) and e.table == wanted and e.record.state is state and e.record.copy >= copy
                for e in list(self.events)
            )
        )

    def catch_up(self, seconds: float = WAIT_SECONDS) -> None:
        """Until everything that is committed now is published."""
        target = self.source.now().ordinal
        self.wait_for_log(target)
        last = self.reader.head.seq
        self.wait_for(lambda: (cut := self.connector.status().cut) is not None and cut.seq >= last, seconds)

    def wait_for_log(self, ordinal: int | None = None) -> None:
        """Until the log has everything up to this, or all that is committed now."""
        wanted = self.source.now().ordinal if ordinal is None else ordinal
        wait_until(lambda: LakeHome(self.lake).has_log, WAIT_SECONDS)
        wait_until(lambda: self.reader.refresh().ordinal >= wanted or self._has_ended(), WAIT_SECONDS)

    def wait_for_live_reads(self) -> None:
        """Until a live read shows all that is committed now."""
        self.wait_for_log()
        head = self.reader.position_of(self.reader.head.seq).ordinal
        home = LakeHome(self.lake)
        wait_until(lambda: home.runs.vouched.load() >= head or self._has_ended(), WAIT_SECONDS)

    @cached_property
    def reader(self) -> LogReader:
        return LogReader(LakeHome(self.lake).log)


@contextmanager
def running(
    settings: ConnectorSettings, source: Source, spark: SparkSession | Engine | None = None
) -> Iterator[Running]:
    """A connector that runs inside the `with`."""
    run = Running(settings, source, spark)
    try:
        yield run
    finally:
        run.connector.stop()
        run.connector.wait(60)


def captures(pid: int) -> list[psutil.Process]:
    """The capture processes of a process."""
    found = []
    for each in psutil.Process(pid).children(recursive=True):
        # Others end by themselves meanwhile.
        with suppress(psutil.NoSuchProcess):
            if each.name() == NAME:
                found.append(each)
    return found


def sync_once(
    settings: ConnectorSettings, source: Source, spark: SparkSession | Engine | None = None
) -> dict[str, TableState]:
    """One run that catches up and ends. Every table's state afterwards."""
    connector = connector_of(settings, source, spark)
    connector.start()
    assert connector.wait(300)
    return {str(table): record.state for table, record in connector.tables().items()}
