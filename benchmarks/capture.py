"""Capture next to what Postgres itself can do: how long until all that was committed is in the log, fsynced.

python -m benchmarks.capture [--quick] [--rounds 5]

The same WAL is read again and again through slots that were made before it was written, the contestants in turn:

    tailrace         the capture process, into a log with fsync
    pg_recvlogical   the server's own client, into nothing
    server           decoded and counted inside the server, sent to no one

A contestant's time is the median of its rounds, to the last change: ours from where it streams, because Python takes
most of a second to start, theirs from the start of the client. The aims are speeds: theirs over ours, and the memory
that the capture process has taken at most.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psycopg
from benchmarks.aims import Aim, report
from benchmarks.figures import seconds, show
from demo.embedded import EmbeddedPostgres

from tailrace.connector.start.capture_process import use_little_memory
from tailrace.log.reader import LogReader
from tailrace.log.write.writer import LogWriter
from tailrace.model.table import TableId
from tailrace.source.door.control import CaptureControl
from tailrace.source.postgres.source import PostgresSource

ROUNDS = 5
RSS_MB_MAX = 200
POLL_SECONDS = 0.01
ROWS = "select n, n % 1000, md5(n::text), now() from generate_series({0}, {1}) n"
AIMS = {"thousands": 1.5, "singles": 1.2, "one": 1.2}
"""How many times as fast as pg_recvlogical."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.capture")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, one round")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--capture", metavar="ORDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.capture:
        return _capture(json.loads(options.capture))
    rows, rounds = (100_000, 1) if options.quick else (1_000_000, options.rounds)
    works: dict[str, Callable[[psycopg.Connection], None]] = {
        "thousands": lambda conn: _in_parts(conn, rows, 1000),
        "singles": lambda conn: _in_parts(conn, rows // 10, 1),
        "one": lambda conn: _in_parts(conn, rows, rows),
    }
    aims, peak = [], 0.0
    for name, work in works.items():
        with tempfile.TemporaryDirectory(prefix="tailrace-") as folder:
            found, used = _contest(Path(folder), name, work, rounds)
        peak = max(peak, used)
        aims.append(Aim(f"capture_{name}_speed", found["pg_recvlogical"] / found["tailrace"], AIMS[name]))
    return report([*aims, Aim("capture_rss_mb", peak, RSS_MB_MAX, at_most=True)])


def _contest(
    folder: Path, name: str, work: Callable[[psycopg.Connection], None], rounds: int
) -> tuple[dict[str, float], float]:
    """The median seconds of each contestant, and the most memory that capture took."""
    with EmbeddedPostgres(folder / "data") as server, psycopg.connect(server.dsn(), autocommit=True) as conn:
        conn.execute("create table events (id bigint primary key, customer int, note text, at timestamptz)")
        source = PostgresSource(server.dsn())
        claims = [source.claim(None) for _ in range(rounds)]
        for claim in claims:
            source.prepare(claim, [TableId("public", "events")], None)
        publication = claims[0]["publication"]
        conn.execute("select pg_create_logical_replication_slot('theirs', 'pgoutput')")
        work(conn)
        end = source.now().ordinal
        times: dict[str, list[float]] = {"tailrace": [], "pg_recvlogical": [], "server": []}
        peaks = []
        for number, claim in enumerate(claims):
            taken, peak = _ours(source, claim, folder / f"log{number}", end)
            times["tailrace"].append(taken)
            peaks.append(peak)
            times["pg_recvlogical"].append(_theirs(server, conn, publication, number))
            times["server"].append(_inside(conn, publication))
    medians = {each: statistics.median(found) for each, found in times.items()}
    rows = [(each, seconds(medians[each]), f"{medians['pg_recvlogical'] / medians[each]:.2f}") for each in times]
    show(f"{name}: {max(peaks):,.0f} MB", ("contestant", "median", "of pg_recvlogical's speed"), rows)
    return medians, max(peaks)


def _in_parts(conn: psycopg.Connection, rows: int, size: int) -> None:
    """So many rows, in transactions of this size."""
    statement = "insert into events " + ROWS.format("first", f"first + {size - 1}")
    conn.execute(
        f"do $$ declare first bigint; begin for i in 0 .. {rows // size - 1} loop first := i::bigint * {size}; "
        f"{statement}; commit; end loop; end $$"
    )


def _ours(source: PostgresSource, claim: object, log: Path, end: int) -> tuple[float, float]:
    order = json.dumps({"source": source.arguments, "claim": claim, "log": str(log)})
    command = [sys.executable, "-m", "benchmarks.capture", "--capture", order]
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert child.stdout is not None
    try:
        child.stdout.readline()
        begun = time.monotonic()
        while not (log / "head").exists() or LogReader(log).head.ordinal < end:
            time.sleep(POLL_SECONDS)
        return time.monotonic() - begun, _peak_mb(child.pid)
    finally:
        child.kill()
        child.communicate()


def _peak_mb(pid: int) -> float:
    """The most memory that was resident at once, as the kernel has it."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / 1e6


def _capture(order: dict[str, object]) -> int:
    # As the capture process does.
    use_little_memory()
    source = PostgresSource(**order["source"])  # type: ignore[arg-type]
    writer = LogWriter.open(Path(str(order["log"])), source.identify())
    control = CaptureControl(lambda trouble: print(trouble or "streams", flush=True), keep_seconds=0.0)
    source.capture(order["claim"], writer, control)  # type: ignore[arg-type]
    return 0


def _theirs(server: EmbeddedPostgres, conn: psycopg.Connection, publication: str, number: int) -> float:
    """The server's client from a copy of a slot that nothing has been read from, to where the WAL ends now."""
    conn.execute("select pg_copy_logical_replication_slot('theirs', %s)", [f"copy{number}"])
    row = conn.execute("select pg_current_wal_lsn()::text").fetchone()
    assert row is not None
    options = ["proto_version=4", f"publication_names={publication}", "streaming=on", "messages=true"]
    command = [str(server.bin_dir / "pg_recvlogical"), "-d", server.dsn(), "--slot", f"copy{number}", "--start"]
    command += ["-f", "/dev/null", "--no-loop", "--endpos", row[0]]
    command += [part for each in options for part in ("-o", each)]
    begun = time.monotonic()
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    taken = time.monotonic() - begun
    conn.execute("select pg_drop_replication_slot(%s)", [f"copy{number}"])
    return taken


def _inside(conn: psycopg.Connection, publication: str) -> float:
    begun = time.monotonic()
    conn.execute(
        "select count(*) from pg_logical_slot_peek_binary_changes('theirs', null, null, "
        "'proto_version', '4', 'publication_names', %s, 'messages', 'true')",
        [publication],
    )
    return time.monotonic() - begun


if __name__ == "__main__":
    sys.exit(main())
