"""The log under test: append with group commit, and playback."""

from __future__ import annotations

import time
from pathlib import Path

import pyarrow as pa

from tailrace.log.playback.play import read
from tailrace.log.reader import LogReader
from tailrace.log.write.writer import LogWriter

RANGE_BYTES = 64 << 20


def append(path: Path, groups: list[pa.RecordBatch]) -> float:
    """Seconds to make all groups durable, one flush each."""
    writer = LogWriter.open(path, {"source": "benchmark"})
    start = time.perf_counter()
    for group in groups:
        writer.append(group)
        writer.flush()
    seconds = time.perf_counter() - start
    writer.close()
    return seconds


def playback(path: Path) -> tuple[float, int]:
    """Seconds to play back every transaction, and the number of changes."""
    start = time.perf_counter()
    reader = LogReader(path)
    upto = reader.head.seq
    rows = sum(batch.num_rows for part in reader.ranges(0, upto, RANGE_BYTES) for batch in read(path, part, 0, upto))
    return time.perf_counter() - start, rows


def segment_bytes(path: Path) -> bytes:
    """All that the segments hold, one after the other."""
    return b"".join(file.read_bytes() for file in sorted(path.glob("*.arrows")))
