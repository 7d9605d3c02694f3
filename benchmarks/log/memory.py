"""The memory of the writer and of playback while one transaction grows large among many small ones.

A transaction of N changes is logged in portions among 100,000 small ones, twice: one commits, one rolls back.
Writer and playback run in processes of their own, and their peak resident memory is measured at two sizes.

python -m benchmarks.log.memory [N ...]
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.aims import Aim, report
from benchmarks.log import workload

from tailrace.log.playback.play import read
from tailrace.log.reader import LogReader
from tailrace.log.write.writer import LogWriter
from tailrace.model.kind import Kind

SMALL = 100_000
PORTION = 10_000
"""Changes that the large transactions add at a time: what is held is one flush, whatever the transaction's size."""
RSS_MB_MAX = 400
SIZES = (2_000_000, 10_000_000)


def write(path: Path, size: int) -> None:
    """Log a large transaction that commits and one that rolls back, interleaved with small ones."""
    writer = LogWriter.open(path, {"source": "benchmark"})
    large, lost = 1, 2
    writer.append(workload.control(Kind.BEGIN, large))
    writer.append(workload.control(Kind.BEGIN, lost))
    portions = size // PORTION
    for portion in range(portions):
        for xid in (large, lost):
            writer.append(workload.changes(xid, PORTION))
            writer.flush()
        first, following = (SMALL * number // portions for number in (portion, portion + 1))
        writer.append(workload.transactions(10 + first, following - first))
        writer.flush()
    writer.append(workload.control(Kind.ROLLBACK, lost))
    writer.append(workload.control(Kind.COMMIT, large, ordinal=1 << 40))
    writer.flush()
    writer.close()


def play(path: Path, size: int) -> None:
    """Read everything back and count it."""
    reader = LogReader(path)
    upto = reader.head.seq
    rows = 0
    for part in reader.ranges(0, upto, 64 << 20):
        rows += sum(batch.num_rows for batch in read(path, part, 0, upto))
    expected = size // PORTION * PORTION + SMALL * workload.CHANGES_PER_TRANSACTION
    if (upto, rows) != (SMALL + 1, expected):
        raise AssertionError(f"{upto} transactions with {rows} changes came back, not {SMALL + 1} with {expected}")


def peak_mb(what: str, path: Path, size: int) -> float:
    """Peak resident memory of a process that does this and nothing else."""
    command = [sys.executable, "-m", "benchmarks.log.memory", f"--{what}", str(path), str(size)]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(folder: Path, sizes: tuple[int, ...]) -> list[Aim]:
    peaks: dict[str, list[float]] = {"writer": [], "playback": []}
    for size in sizes:
        with tempfile.TemporaryDirectory(dir=folder) as path:
            for name, what in (("writer", "write"), ("playback", "play")):
                peaks[name].append(peak_mb(what, Path(path), size))
                print(f"memory of the {name} with a transaction of {size:,} changes: {peaks[name][-1]:.0f} MB")
    aims = [Aim(f"{name}_rss_mb", max(found), RSS_MB_MAX, at_most=True) for name, found in peaks.items()]
    return aims + [Aim(f"{name}_rss_growth", found[-1] / found[0], 1.25, at_most=True) for name, found in peaks.items()]


def main(arguments: list[str]) -> int:
    if arguments and arguments[0] in ("--write", "--play"):
        {"--write": write, "--play": play}[arguments[0]](Path(arguments[1]), int(arguments[2]))
        status = Path("/proc/self/status").read_text(encoding="ascii")
        print(int(status.split("VmHWM:")[1].split()[0]) / 1024)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        return report(measure(Path(folder), tuple(int(each) for each in arguments) or SIZES))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
