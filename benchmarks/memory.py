"""The memory of a publish while one transaction grows large, and of processes that have nothing to do.

python -m benchmarks.memory [--rows 1000000 3000000 10000000] [--only transactions|idle] [--quick]

    transactions  one of so many changes, half updates, two fifths inserts, a tenth deletes, published
    idle          a `sync` of a small database, and a `serve` of fifty connectors, while nothing is written

For each size of a transaction a table is made and copied, and the transaction is published by a process that does
nothing else: the driver. Peaks of resident memory: the driver's Python, its JVM, the largest of its Python workers. The
JVM holds both sides of Spark here; on a cluster the executors have machines of their own. The driver's and a worker's
are held to a limit in every size, and each to the growth between the two largest.

Of idle processes, the proportional set size counts: a page that some share counts once.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
import psycopg
from benchmarks import idle
from benchmarks.aims import Aim, report
from demo.embedded import EmbeddedPostgres

from tailrace.connector.connector import Connector
from tailrace.settings import ConnectorSettings, TaskSizes
from tailrace.source.kinds import source_of

GROWTH_MAX = 1.25
MB_MAX = {"driver": 350.0, "worker": 600.0}
"""A task's memory is that of the Python worker that runs it."""
SIZES, QUICK_SIZES = (1_000_000, 3_000_000, 10_000_000), (20_000, 60_000, 200_000)
QUICK_TASKS = TaskSizes(read_bytes=1 << 20, fold_bytes=4 << 20, decoded_bytes_max=16 << 20)
"""So small that small transactions are divided as large ones are."""
SAMPLE_SECONDS = 0.2
MEASURED = ("driver", "jvm", "worker")
PARTS = ("transactions", "idle")
DAEMONS = ("pyspark.daemon", "tailrace.engine.spark.daemon")
"""What Python workers are forked by."""

TABLE = """
create table parcels (id bigint primary key, customer int, at timestamptz, weight numeric(10,2), ok boolean, state text,
                      note text)
"""
VALUES = "n, n % 1000, to_timestamp(n), n / 7.0, n % 2 = 0, 'state ' || n % 5, md5(n::text)"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=None, help="changes in each transaction")
    parser.add_argument("--only", choices=PARTS, action="append", help="this part; repeatable")
    parser.add_argument("--quick", action="store_true", help="small transactions and few connectors, to try it")
    parser.add_argument("--publish", nargs=2, metavar=("DSN", "LAKE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.publish:
        dsn, lake = options.publish
        return _publish(dsn, lake, QUICK_TASKS if options.quick else TaskSizes())
    parts = options.only or PARTS
    aims: list[Aim] = []
    if "transactions" in parts:
        aims += _transactions(options.rows or (QUICK_SIZES if options.quick else SIZES), quick=options.quick)
    if "idle" in parts:
        aims += idle.measure(idle.QUICK if options.quick else idle.FULL)
    return report(aims)


def _transactions(sizes: tuple[int, ...], *, quick: bool) -> list[Aim]:
    peaks = []
    for rows in sizes:
        with tempfile.TemporaryDirectory(prefix="tailrace-") as folder:
            peaks.append(_measured(Path(folder), rows, quick=quick))
    aims = [Aim(f"{name}_mb", max(each[name] for each in peaks), most, at_most=True) for name, most in MB_MAX.items()]
    aims.append(Aim("driver_rss_growth", peaks[-1]["driver"] / peaks[0]["driver"], GROWTH_MAX, at_most=True))
    if len(peaks) > 1:
        growths = {name: peaks[-1][name] / peaks[-2][name] for name in MEASURED}
        aims += [Aim(f"executors_{name}_rss_growth", each, GROWTH_MAX, at_most=True) for name, each in growths.items()]
    return aims


def _measured(folder: Path, rows: int, *, quick: bool) -> dict[str, float]:
    """Peaks in MB while one transaction of so many changes is published."""
    with EmbeddedPostgres(folder / "data") as server:
        dsn, lake = server.create_database("memory"), str(folder / "lake")
        before = rows * 6 // 10
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute(TABLE)
            conn.execute(f"insert into parcels select {VALUES} from generate_series(1, {before}) n")
            conn.execute("analyze parcels")
        _run(dsn, lake, quick=quick)
        with psycopg.connect(dsn) as conn:
            conn.execute(f"update parcels set weight = weight + 1, note = md5(note) where id <= {rows // 2}")
            conn.execute(f"delete from parcels where id > {rows // 2}")
            conn.execute(f"insert into parcels select {VALUES} from generate_series({rows}, {rows + rows * 4 // 10}) n")
        peaks = _run(dsn, lake, quick=quick)
    shown = ", ".join(f"{name} {peaks[name]:,.0f} MB" for name in MEASURED)
    print(f"one transaction of {rows:,} changes: {peaks['seconds']:.0f} s, {shown}", flush=True)
    return peaks


def _run(dsn: str, lake: str, *, quick: bool) -> dict[str, float]:
    sizes = ["--quick"] if quick else []
    command = [sys.executable, "-m", "benchmarks.memory", *sizes, "--publish", dsn, lake]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return found


def _publish(dsn: str, lake: str, sizes: TaskSizes) -> int:
    """Catch up in this process, and print what it took."""
    begun = time.monotonic()
    peaks = Peaks()
    connector = Connector(ConnectorSettings(Path(lake), once=True, sizes=sizes), source_of(dsn))
    connector.start()
    connector.wait()
    print(json.dumps({**peaks.stop(), "seconds": time.monotonic() - begun}))
    return 0


class Peaks:
    """The most memory that this process, and any one of those below it, had resident: the kernel keeps it for each
    process that is there, so a peak between two samples counts too."""

    def __init__(self) -> None:
        self._found = dict.fromkeys(MEASURED, 0.0)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def stop(self) -> dict[str, float]:
        self._stopping.set()
        self._thread.join()
        return {**self._found, "driver": _peak_mb(psutil.Process().pid)}

    def _sample(self) -> None:
        while not self._stopping.wait(SAMPLE_SECONDS):
            for process in psutil.Process().children(recursive=True):
                try:
                    name, megabytes = self._role(process), _peak_mb(process.pid)
                except (psutil.Error, OSError, IndexError):
                    # It has ended meanwhile.
                    continue
                if name is not None:
                    self._found[name] = max(self._found[name], megabytes)

    @staticmethod
    def _role(process: psutil.Process) -> str | None:
        if "java" in process.name():
            return "jvm"
        parent = process.parent()
        return "worker" if parent is not None and any(name in parent.cmdline() for name in DAEMONS) else None


def _peak_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e6


if __name__ == "__main__":
    sys.exit(main())
