"""How fast the log is, next to the disk and to what one would use instead.

python -m benchmarks.log [--quick] [--folder FOLDER]

All figures come from one run on one disk: the log, plain writes of the same bytes with the same syncs, and the peers
with the same records in the same groups. Medians of several rounds, the contestants taking turns.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from benchmarks.aims import Aim, report
from benchmarks.log import memory, ours, peers, workload
from benchmarks.log.cache import forget_cache, forget_file

from tailrace.log.files.layout import segment_path, segment_positions
from tailrace.log.write.writer import LogWriter

GROUP_TRANSACTIONS = 1000
"""22,000 records and 3.1 MB a flush: what a source of 440,000 records a second brings in 50 ms."""
GROUPS = 60
ROUNDS = 5
FLAT_RECORDS = 30_000_000
BYTES_PER_RECORD = 180


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.log")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, no long run, small memory proof")
    parser.add_argument("--folder", type=Path, default=None, help="where to write; default: the temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder)
        aims = compare(path, rounds=2 if options.quick else ROUNDS)
        aims += flat(path, FLAT_RECORDS // 10 if options.quick else FLAT_RECORDS)
        aims += memory.measure(path, (200_000, 1_000_000) if options.quick else memory.SIZES)
    return report(aims)


def compare(folder: Path, rounds: int) -> list[Aim]:
    """The log against the disk and against each peer."""
    groups = [workload.transactions(1 + number * GROUP_TRANSACTIONS, GROUP_TRANSACTIONS) for number in range(GROUPS)]
    records = sum(group.num_rows for group in groups)
    times: dict[str, list[tuple[float, float]]] = {}
    content = _log_once(folder, groups, {})
    share = -(-len(content) // GROUPS)
    plain = [content[start : start + share] for start in range(0, len(content), share)]
    for number in range(rounds):
        # The one that writes second finds memory that the other has just freed, so they take turns at it.
        for turn in ("tailrace", "disk") if number % 2 else ("disk", "tailrace"):
            if turn == "tailrace":
                _log_once(folder, groups, times)
            else:
                with fresh(folder) as path:
                    times.setdefault("disk", []).append(peers.disk(path, plain))
    rows = peers.rows_of(groups)
    for name, peer in peers.PEERS.items():
        for _ in range(min(rounds, 3)):
            with fresh(folder) as path:
                times.setdefault(name, []).append(peer(path, rows))
    return _aims(times, records, len(content))


def _log_once(folder: Path, groups: list[pa.RecordBatch], times: dict[str, list[tuple[float, float]]]) -> bytes:
    """Append and play back once; the bytes that the segments hold."""
    with fresh(folder) as path:
        written = ours.append(path, groups)
        content = ours.segment_bytes(path)
        forget_cache(path)
        times.setdefault("tailrace", []).append((written, ours.playback(path)[0]))
    return content


def _aims(times: dict[str, list[tuple[float, float]]], records: int, size: int) -> list[Aim]:
    medians = {name: tuple(map(statistics.median, zip(*found, strict=True))) for name, found in times.items()}
    print(f"{records:,} records, {size / 1e6:.0f} MB, {GROUPS} synced groups")
    for name, (written, read) in medians.items():
        print(
            f"{name:>9}: append {records / written:>10,.0f} records/s {size / written / 1e6:>6,.0f} MB/s"
            f"   playback {records / read:>10,.0f} records/s {size / read / 1e6:>6,.0f} MB/s"
        )
    ratios = [d[0] / t[0] for t, d in zip(times["tailrace"], times["disk"], strict=True)]
    reads = [d[1] / t[1] for t, d in zip(times["tailrace"], times["disk"], strict=True)]
    print(f"playback to reading the same bytes from the disk: {statistics.median(reads):.2f}")
    written, read = medians["tailrace"]
    return [
        Aim("append_to_disk", statistics.median(ratios), 0.5),
        *(Aim(f"append_to_{name}", medians[name][0] / written, 1) for name in peers.PEERS),
        *(Aim(f"playback_to_{name}", medians[name][1] / read, 1) for name in peers.PEERS),
    ]


def flat(folder: Path, records: int) -> list[Aim]:
    """The cost of a record in a log that has grown, next to that in a new one, the two taking turns: the machine's own
    speed changes more within a minute than what is looked for."""
    free = shutil.disk_usage(folder).free
    if free < 2 * records * BYTES_PER_RECORD:
        print(f"only {free / 1e9:.0f} GB free: {records:,} records need {2 * records * BYTES_PER_RECORD / 1e9:.0f} GB")
        return [Aim("flat_cost", float("inf"), 1.25, at_most=True)]
    per_group = GROUP_TRANSACTIONS * (workload.CHANGES_PER_TRANSACTION + 2)
    groups, share = records // per_group, max(1, 1_000_000 // per_group)
    costs: dict[str, list[tuple[float, float]]] = {"grown": [], "new": []}
    with fresh(folder) as grown_path, fresh(folder) as new_path:
        grown, sealed = LogWriter.open(grown_path, {"source": "benchmark"}), 0
        for number in range(groups - share):
            _timed(grown, number)
            sealed = _forget_sealed(grown_path, sealed)
        new = LogWriter.open(new_path, {"source": "benchmark"})
        for number in range(share):
            costs["grown"].append(_timed(grown, groups - share + number))
            sealed = _forget_sealed(grown_path, sealed)
            costs["new"].append(_timed(new, number))
        grown.close()
        new.close()
    medians = {name: tuple(map(statistics.median, zip(*found, strict=True))) for name, found in costs.items()}
    for name, (processor, wall) in medians.items():
        nanoseconds = f"{processor / per_group * 1e9:.0f} ns of the processor, {wall / per_group * 1e9:.0f} ns in all"
        print(f"a record in a {name} log (the last million of {records:,}, the first of a new one): {nanoseconds}")
    # The wall clock shows what else the disk has to do; the processor's time is ours alone.
    return [Aim("flat_cost", medians["grown"][0] / medians["new"][0], 1.25, at_most=True)]


def _forget_sealed(path: Path, known: int) -> int:
    """Take segments that were sealed since `known` out of the system's cache; how many are sealed now. A virtual
    machine pays for each page that it touches first: a cache that grows would be all that is measured."""
    *sealed, _ = segment_positions(path)
    for position in sealed[known:]:
        forget_file(segment_path(path, position))
    return len(sealed)


def _timed(writer: LogWriter, number: int) -> tuple[float, float]:
    """Append a group and make it durable; seconds of the processor and in all."""
    group = workload.transactions(1 + number * GROUP_TRANSACTIONS, GROUP_TRANSACTIONS)
    start, start_processor = time.perf_counter(), time.process_time()
    writer.append(group)
    writer.flush()
    return time.process_time() - start_processor, time.perf_counter() - start


@contextmanager
def fresh(folder: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=folder) as path:
        yield Path(path)


if __name__ == "__main__":
    sys.exit(main())
