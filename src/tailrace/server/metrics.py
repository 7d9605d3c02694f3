"""What Prometheus reads: every connector at the moment of the scrape. docs/server.md says what each one means."""

from __future__ import annotations

import math
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from importlib.metadata import version

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from tailrace.errors import TailraceError
from tailrace.lake.home import LakeHome
from tailrace.model.table_state import TableState
from tailrace.server.health import why_not_progressing
from tailrace.server.lakes.changes import ChangeCounts
from tailrace.server.lakes.numbers import LakeNumbers
from tailrace.server.supervisor.board import PUBLISH_SECONDS, Board, Notes
from tailrace.server.supervisor.door import ConnectorHost
from tailrace.server.supervisor.supervisor import ConnectorView

STATES = ("UNASSIGNED", "RUNNING", "PAUSED", "STOPPED", "FAILED", "RESTARTING")
CONNECTOR = "connector"
BUILD_INFO = "tailrace_build_info"
"""Of the server: the only one without a connector."""

GAUGES = {
    "connector_state": "1 for the state that the connector is in, 0 for the others.",
    "progressing": "1 while the connector gets further, or has nothing to do; 0 when it should and does not.",
    "lag_seconds": "Age of the oldest commit in the log that is not published yet; 0 when all are.",
    "lag_bytes": "What the source has written to its own log and ours does not have yet.",
    "lag_transactions": "Transactions in the log that are not published yet.",
    "changes_per_second": "Records that come into the log, those of unfinished transactions too.",
    "newest_cut_timestamp_seconds": "When the source committed what the newest published cut shows.",
    "source_retained_bytes": "What the source keeps of its own log for the connector.",
    "source_slot_safe_bytes": "What may still be written before the source gives up the slot; absent without a limit.",
    "log_transactions": "The sequence number of the newest transaction in the log.",
    "log_bytes": "What the log takes on disk.",
    "disk_free_bytes": "What is free on the disk that the lake is on.",
    "spark_jobs": "Jobs that Spark has run for the connector since its run began.",
    "spark_tasks": "Tasks of these jobs.",
    "trouble": "1 while the connector waits for something or tries something again.",
    "tables": "Tables by state.",
    "snapshot_rows": "Rows of a table that its copy has brought so far.",
    "snapshot_rows_estimated": "Rows that the copy of a table will bring, about.",
}
COUNTERS = {
    "changes": "Changes of finished transactions that came into the log.",
    "published_transactions": "Transactions published since the server's start.",
    "restarts": "Runs that a transient error ended and that were tried again.",
    "errors": "Errors by kind: transient and definite ends of runs, and tables that went into error.",
    "snapshot_steps": "Steps of copies: started, in-progress, completed, aborted and so on.",
}

LABELS = {
    "connector_state": ("state",),
    "tables": ("state",),
    "snapshot_rows": ("table",),
    "snapshot_rows_estimated": ("table",),
    "errors": ("kind",),
    "snapshot_steps": ("step",),
}
"""Beside the connector's name."""


class Connectors(Collector):
    """Looks at all connectors when it is asked."""

    def __init__(self, supervisor: ConnectorHost, board: Board, numbers: LakeNumbers) -> None:
        self._supervisor = supervisor
        self._board = board
        self._numbers = numbers
        self._changes = ChangeCounts()

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        families = _Families()
        for view in self._supervisor.views():
            notes = self._board.of(view.name)
            families.add_state(view, notes, self._board.now())
            families.add_notes(view.name, notes)
            try:
                home = self._supervisor.lake_home(view.name)
                families.add_lake(view.name, home, self._numbers)
                families.add_changes(view.name, self._changes.count(home))
            except (TailraceError, OSError):
                # One whose configuration or lake cannot be read has no such figures.
                continue
        yield from families.all()


class _Families:
    """The metrics of one scrape."""

    def __init__(self) -> None:
        self._gauges = {
            name: GaugeMetricFamily(f"tailrace_{name}", text, labels=[CONNECTOR, *LABELS.get(name, ())])
            for name, text in GAUGES.items()
        }
        self._counters = {
            name: CounterMetricFamily(f"tailrace_{name}", text, labels=[CONNECTOR, *LABELS.get(name, ())])
            for name, text in COUNTERS.items()
        }
        self._publishes = HistogramMetricFamily(
            "tailrace_publish_seconds", "What publishing a cut took, all tables of it.", labels=[CONNECTOR]
        )

    def all(self) -> Iterator[Metric]:
        built = GaugeMetricFamily(BUILD_INFO, "1, with the version of Tailrace.", labels=["version"])
        built.add_metric([version("tailrace")], 1)
        yield built
        yield from self._gauges.values()
        yield from self._counters.values()
        yield self._publishes

    def _gauge(self, name: str, value: float, *labels: str) -> None:
        self._gauges[name].add_metric(labels, value)

    def add_state(self, view: ConnectorView, notes: Notes, now: float) -> None:
        for state in STATES:
            self._gauge("connector_state", state == view.state, view.name, state)
        self._gauge("progressing", why_not_progressing(view, notes, now) is None, view.name)

    def add_notes(self, name: str, notes: Notes) -> None:
        self._gauge("trouble", notes.trouble is not None, name)
        if notes.progress is not None:
            told = notes.progress
            self._gauge("lag_seconds", told.lag_seconds, name)
            self._gauge("lag_transactions", max(0, told.log_seq - told.cut.seq), name)
            self._gauge("changes_per_second", told.changes_per_second, name)
            self._gauge("log_transactions", told.log_seq, name)
            self._gauge("spark_jobs", told.work.jobs, name)
            self._gauge("spark_tasks", told.work.tasks, name)
            if told.lag_bytes is not None:
                self._gauge("lag_bytes", told.lag_bytes, name)
        committed_us = notes.newest_commit_us
        if committed_us:
            self._gauge("newest_cut_timestamp_seconds", committed_us / 1e6, name)
        if notes.retained is not None and notes.retained.bytes is not None:
            self._gauge("source_retained_bytes", notes.retained.bytes, name)
        if notes.retained is not None and notes.retained.safe_bytes is not None:
            self._gauge("source_slot_safe_bytes", notes.retained.safe_bytes, name)
        for each in notes.copying:
            self._gauge("snapshot_rows", each.rows_done, name, str(each.table))
            self._gauge("snapshot_rows_estimated", each.rows_estimated, name, str(each.table))
        self._counters["published_transactions"].add_metric([name], notes.transactions)
        self._counters["restarts"].add_metric([name], notes.errors["transient"])
        for kind in ("transient", "definite", "table"):
            self._counters["errors"].add_metric([name, kind], notes.errors[kind])
        for step, count in sorted(notes.notified.items()):
            self._counters["snapshot_steps"].add_metric([name, step], count)
        self._publishes.add_metric([name], _buckets(notes.publishes.counts), notes.publishes.seconds)

    def add_changes(self, name: str, count: int | None) -> None:
        if count is not None:
            self._counters["changes"].add_metric([name], count)

    def add_lake(self, name: str, home: LakeHome, numbers: LakeNumbers) -> None:
        if home.source() is None:
            return
        states = numbers.states(home)
        for state in TableState:
            self._gauge("tables", states.get(state, 0), name, state.value)
        self._gauge("log_bytes", numbers.log_bytes(home), name)
        self._gauge("disk_free_bytes", shutil.disk_usage(home.folder).free, name)


class Metrics:
    """All that is to be read, in Prometheus's text."""

    def __init__(self, supervisor: ConnectorHost, board: Board, numbers: LakeNumbers) -> None:
        self._registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self._registry)
        self._registry.register(Connectors(supervisor, board, numbers))

    def text(self) -> bytes:
        return generate_latest(self._registry)


def _buckets(publishes: Counter[float]) -> list[tuple[str, float]]:
    counted, found = 0, []
    for bound in PUBLISH_SECONDS:
        counted += publishes[bound]
        found.append(("+Inf" if math.isinf(bound) else str(bound), float(counted)))
    return found
