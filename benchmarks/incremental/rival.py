"""Debezium's incremental snapshot, with a consumer that counts rows and does nothing else: a process of its own.

python -m benchmarks.incremental.rival DSN TABLE CHUNK_ROWS

It streams the table for some seconds, so that Java is warm, and is then told by its signal table to copy it. The clock
runs from that to the last row. Records are looked at in Java, so that none of them costs a call out of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import Any

import psycopg
from benchmarks.debezium import peak_mb, properties, start_engine, start_java

SIGNALS = "debezium_signal"
WARM_SECONDS = 10.0
QUIET_SECONDS = 15.0
"""Without a row for so long, the copy has ended. There is always the next change of the stream to close a window."""
PATIENCE_SECONDS = 300.0
"""To the first change, and to the first row."""
COPY_SECONDS_MAX = 3600.0

_SIGNAL_TABLE = f"create table if not exists {SIGNALS} (id text primary key, type text not null, data text)"
_ORDER = '{{"data-collections": ["public.{table}"], "type": "incremental"}}'


@dataclass(frozen=True)
class Copied:
    """What one copy took."""

    rows: int
    seconds: float
    peak_mb: float

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds


def copy(dsn: str, table: str, chunk_rows: int) -> Copied:
    """Let Debezium copy the table once, in chunks of so many rows."""
    command = [sys.executable, "-m", "benchmarks.incremental.rival", dsn, table, str(chunk_rows)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=COPY_SECONDS_MAX)
    _drop_slot(dsn, _name(chunk_rows))
    found = [line.split() for line in done.stdout.splitlines() if line.startswith("copied ")]
    if not found:
        raise RuntimeError(f"Debezium failed: {done.stdout[-4000:]} {done.stderr[-2000:]}")
    return Copied(int(found[0][1]), float(found[0][2]), float(found[0][3]))


def _name(chunk_rows: int) -> str:
    return f"debezium_{chunk_rows}"


def _drop_slot(dsn: str, name: str) -> None:
    """As soon as the server has seen that its reader is gone: it would hold back the log of the server."""
    query = "select pg_drop_replication_slot(slot_name) from pg_replication_slots where slot_name = %s and not active"
    with psycopg.connect(dsn, autocommit=True) as connection:
        while not connection.execute(query, [name]).fetchone():
            time.sleep(0.1)


def main() -> int:
    dsn, table, chunk_rows = sys.argv[1], sys.argv[2], int(sys.argv[3])
    name = _name(chunk_rows)
    with (
        tempfile.TemporaryDirectory(prefix="tailrace-debezium-") as folder,
        psycopg.connect(dsn, autocommit=True) as connection,
    ):
        connection.execute(_SIGNAL_TABLE)
        connection.execute(f"create publication {name} for table {table}, {SIGNALS}")
        connection.execute("select pg_create_logical_replication_slot(%s, 'pgoutput')", [name])
        start_java(folder)
        counter = _Counter()
        start_engine(_properties(dsn, name, table, chunk_rows, folder), counter.add)
        counter.wait_for_change()
        time.sleep(WARM_SECONDS)
        begun = time.perf_counter()
        connection.execute(
            f"insert into {SIGNALS} values (%s, 'execute-snapshot', %s)", [name, _ORDER.format(table=table)]
        )
        counter.wait_until_quiet()
        print("copied", counter.rows, counter.last_at - begun, peak_mb(), flush=True)
    # Without a word to the engine, which may take its time to close.
    os._exit(0)


def _properties(dsn: str, name: str, table: str, chunk_rows: int, folder: str) -> dict[str, str]:
    return {
        **properties(dsn, name, name, table, folder),
        "table.include.list": f"public.{table},public.{SIGNALS}",
        "signal.data.collection": f"public.{SIGNALS}",
        "incremental.snapshot.chunk.size": str(chunk_rows),
    }


class _Counter:
    """Counts the rows of the copy among all records."""

    def __init__(self) -> None:
        self._is_row = _is_row()
        self._changed = threading.Event()
        self._rowed = threading.Event()
        self.rows = 0
        self.last_at = 0.0

    def add(self, records: Any) -> None:
        self._changed.set()
        rows = int(records.stream().filter(self._is_row).count())
        if rows:
            self.rows += rows
            self.last_at = time.perf_counter()
            self._rowed.set()

    def wait_for_change(self) -> None:
        if not self._changed.wait(PATIENCE_SECONDS):
            raise TimeoutError("Debezium saw no change")

    def wait_until_quiet(self) -> None:
        if not self._rowed.wait(PATIENCE_SECONDS):
            raise TimeoutError("Debezium copied no row")
        while time.perf_counter() - self.last_at < QUIET_SECONDS:
            time.sleep(0.1)


def _is_row() -> Any:
    """A predicate of Java's own: `record.value().value().getString("op").equals("r")`."""
    from jpype import JClass, JString

    handles, method = JClass("java.lang.invoke.MethodHandles"), JClass("java.lang.invoke.MethodType").methodType
    object_, string, boolean = JClass("java.lang.Object"), JClass("java.lang.String"), JClass("java.lang.Boolean").TYPE
    event, record = JClass("io.debezium.engine.ChangeEvent"), JClass("org.apache.kafka.connect.source.SourceRecord")
    struct = JClass("org.apache.kafka.connect.data.Struct")
    find = handles.publicLookup().findVirtual
    operation = handles.insertArguments(find(struct, "getString", method(string, string)), 1, JString("op"))
    steps = [
        find(event, "value", method(object_)).asType(method(record, object_)),
        find(record, "value", method(object_)).asType(method(struct, record)),
        operation,
        find(string, "equals", method(boolean, object_)).bindTo(JString("r")).asType(method(boolean, string)),
    ]
    chain = steps[0]
    for step in steps[1:]:
        chain = handles.filterReturnValue(chain, step)
    return JClass("java.lang.invoke.MethodHandleProxies").asInterfaceInstance(
        JClass("java.util.function.Predicate"), chain
    )


if __name__ == "__main__":
    sys.exit(main())
