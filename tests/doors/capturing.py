"""Capture from any source beside a test, and what it left in the log. Also a process of its own, to be killed:

python -m tests.doors.capturing <script> <claim> <log>
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.doors.scripted import ScriptedSource
from tests.postgres import wait_until

from tailrace.log.playback.play import read
from tailrace.log.reader import LogReader
from tailrace.log.schema_versions import SchemaVersion
from tailrace.log.write.writer import LogWriter
from tailrace.model.change import POS, SEQ
from tailrace.model.table import TableSchema
from tailrace.source.door.control import CaptureControl
from tailrace.source.door.source import Source
from tailrace.source.door.values import Claim

KEEP_SECONDS = 3600.0


@dataclass
class Captured:
    """A running capture, as its connector sees it."""

    source: Source
    log: Path
    reports: list[str] = field(default_factory=list)
    is_held: bool = False
    """It has seen that it is paused."""

    def __post_init__(self) -> None:
        self.control = CaptureControl(self.reports.append, KEEP_SECONDS, self._hold)

    def _hold(self) -> None:
        self.is_held = True

    def catch_up(self) -> None:
        """Wait until the log has everything that the source has committed."""
        ordinal = self.source.now().ordinal
        wait_until(lambda: LogReader(self.log).head.ordinal >= ordinal)


@contextmanager
def capturing(source: Source, claim: Claim, log: Path) -> Iterator[Captured]:
    """Capture inside the `with`; an error of capture is raised at its end."""
    captured = Captured(source, log)
    writer = LogWriter.open(log, source.identify())
    try:
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(source.capture, claim, writer, captured.control)
            try:
                yield captured
            finally:
                captured.control.stopping.set()
            running.result()
    finally:
        writer.close()


def logged_changes(source: type[Source], log: Path, table: str) -> list[dict[str, Any]]:
    """The table's changes as the log has them, in order, each decoded with the shape it was logged under."""
    reader = LogReader(log)
    versions = reader.schemas()
    relations = {version.relation for version in versions if str(version.schema.table) == table}
    changes: list[dict[str, Any]] = []
    for piece in reader.ranges(0, reader.head.seq, 1 << 20, relations):
        for batch in read(log, piece, 0, reader.head.seq, relations):
            for row in range(batch.num_rows):
                one = batch.slice(row, 1)
                relation, xid, position = (one[name][0].as_py() for name in ("relation", "xid", "position"))
                shape = _shape([each for each in versions if each.relation == relation], xid, position)
                changes += source.decode(one, shape).to_pylist()
    return sorted(changes, key=lambda change: (change[SEQ], change[POS]))


def _shape(versions: Sequence[SchemaVersion], xid: int, position: int) -> TableSchema:
    """A record's shape: its own transaction's newest one before it, else the newest that was valid for all."""
    own = [version for version in versions if version.xid == xid and version.position <= position]
    shared = [version for version in versions if version.since <= position]
    if own:
        return max(own, key=lambda version: version.position).schema
    return max(shared, key=lambda version: (version.since, version.position)).schema


if __name__ == "__main__":
    script, name, log_path = sys.argv[1:]
    scripted = ScriptedSource(script)
    opened = LogWriter.open(Path(log_path), scripted.identify())
    scripted.capture({"name": name}, opened, CaptureControl(print, KEEP_SECONDS))
