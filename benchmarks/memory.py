"""The memory of a publish while one transaction grows large: half updates, two fifths inserts, a tenth deletes.

python -m benchmarks.memory [--rows 1000000 3000000 10000000] [--quick]

For each size a table is made and copied, and one transaction of so many changes is published by a process that does
nothing else: the driver. Peaks of resident memory: the driver's Python, its JVM, the largest of its Python workers. The
JVM holds both sides of Spark here; on a cluster the executors have machines of their own.

The smallest is published without Spark, the two others by executors: the driver is compared over all, everything over
those two.
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
from benchmarks.aims import Aim, report
from demo.embedded import EmbeddedPostgres

from tailrace.connector import _publishing
from tailrace.connector.connector import Connector
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

GROWTH_MAX = 1.25
SIZES = (1_000_000, 3_000_000, 10_000_000)
QUICK_SIZES, QUICK_DRIVER_BYTES = (20_000, 60_000, 200_000), 4 << 20
SAMPLE_SECONDS = 0.2
MEASURED = ("driver", "jvm", "worker")

TABLE = """
create table parcels (id bigint primary key, customer int, at timestamptz, weight numeric(10,2), ok boolean, state text,
                      note text)
"""
VALUES = "n, n % 1000, to_timestamp(n), n / 7.0, n % 2 = 0, 'state ' || n % 5, md5(n::text)"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory")
    parser.add_argument("--rows", type=int, nargs="+", default=SIZES)
    parser.add_argument("--quick", action="store_true", help="small transactions, to try it")
    parser.add_argument("--driver-bytes", type=int, default=_publishing.DRIVER_BYTES_MAX, help=argparse.SUPPRESS)
    parser.add_argument("--publish", nargs=2, metavar=("DSN", "LAKE"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.publish:
        _publishing.DRIVER_BYTES_MAX = options.driver_bytes
        return _publish(*options.publish)
    if options.quick:
        options.rows, options.driver_bytes = QUICK_SIZES, QUICK_DRIVER_BYTES
    peaks = []
    for rows in options.rows:
        with tempfile.TemporaryDirectory(prefix="tailrace-") as folder:
            peaks.append(_measured(Path(folder), rows, options.driver_bytes))
    return report(_aims(peaks))


def _aims(peaks: list[dict[str, float]]) -> list[Aim]:
    by_executors = [each for each in peaks if each["jvm"]]
    aims = [Aim("sizes_by_executors", len(by_executors), 2)]
    aims.append(Aim("driver_rss_growth", peaks[-1]["driver"] / peaks[0]["driver"], GROWTH_MAX, at_most=True))
    if len(by_executors) > 1:
        small, large = by_executors[0], by_executors[-1]
        growths = {name: large[name] / small[name] for name in MEASURED}
        aims += [Aim(f"executors_{name}_rss_growth", each, GROWTH_MAX, at_most=True) for name, each in growths.items()]
    return aims


def _measured(folder: Path, rows: int, driver_bytes: int) -> dict[str, float]:
    """Peaks in MB while one transaction of so many changes is published."""
    with EmbeddedPostgres(folder / "data") as server:
        dsn, lake = server.create_database("memory"), str(folder / "lake")
        before = rows * 6 // 10
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute(TABLE)
            conn.execute(f"insert into parcels select {VALUES} from generate_series(1, {before}) n")
            conn.execute("analyze parcels")
        _run(dsn, lake, driver_bytes)
        with psycopg.connect(dsn) as conn:
            conn.execute(f"update parcels set weight = weight + 1, note = md5(note) where id <= {rows // 2}")
            conn.execute(f"delete from parcels where id > {rows // 2}")
            conn.execute(f"insert into parcels select {VALUES} from generate_series({rows}, {rows + rows * 4 // 10}) n")
        peaks = _run(dsn, lake, driver_bytes)
    shown = ", ".join(f"{name} {peaks[name]:,.0f} MB" for name in MEASURED)
    print(f"one transaction of {rows:,} changes: {peaks['seconds']:.0f} s, {shown}", flush=True)
    return peaks


def _run(dsn: str, lake: str, driver_bytes: int) -> dict[str, float]:
    limit = ["--driver-bytes", str(driver_bytes)]
    command = [sys.executable, "-m", "benchmarks.memory", *limit, "--publish", dsn, lake]
    found: dict[str, float] = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return found


def _publish(dsn: str, lake: str) -> int:
    """Catch up in this process, and print what it took."""
    begun = time.monotonic()
    peaks = Peaks()
    connector = Connector(ConnectorSettings(Path(lake), once=True), source_of(dsn))
    connector.start()
    connector.wait()
    print(json.dumps({**peaks.stop(), "seconds": time.monotonic() - begun}))
    return 0


class Peaks:
    """Samples the resident memory of this process and of those below it."""

    def __init__(self) -> None:
        self._found = dict.fromkeys(MEASURED, 0.0)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def stop(self) -> dict[str, float]:
        self._stopping.set()
        self._thread.join()
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return {**self._found, "driver": int(status.split("VmHWM:")[1].split()[0]) / 1024}

    def _sample(self) -> None:
        while not self._stopping.wait(SAMPLE_SECONDS):
            for process in psutil.Process().children(recursive=True):
                try:
                    name, megabytes = self._role(process), process.memory_info().rss / (1 << 20)
                except psutil.Error:
                    continue
                if name is not None:
                    self._found[name] = max(self._found[name], megabytes)

    @staticmethod
    def _role(process: psutil.Process) -> str | None:
        if "java" in process.name():
            return "jvm"
        return "worker" if "pyspark.daemon" in process.cmdline() else None


if __name__ == "__main__":
    sys.exit(main())
