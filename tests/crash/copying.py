"""`python -m tests.crash.copying SCRIPT LAKE [MODE]`: one run of a connector that copies by windows of ten rows, from a
scripted source into Delta tables. It notes how many rows of each table it reads.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from tests.doors.scripted import ScriptedSource
from tests.running import sync_once

from tailrace.model.table import TableSchema
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings, SnapshotMode, TaskSizes
from tailrace.source import kinds
from tailrace.source.door.rows import SnapshotPoint

READERS_MAX = 1
"""With this, a window has two chunks."""
CHUNK_ROWS = 5


class CountingSource(ScriptedSource):
    """A scripted source that notes what is read."""

    def read_chunk(self, point: SnapshotPoint, chunk: object, schema: TableSchema) -> Iterator[pa.RecordBatch]:
        for batch in super().read_chunk(point, chunk, schema):
            with reads_of(self._path).open("a") as file:
                file.write(f"{schema.table} {batch.num_rows}\n")
            yield batch


def reads_of(script: Path) -> Path:
    """Where what was read of a script is noted."""
    return script.with_suffix(".reads")


def sync(script: Path, lake: Path, mode: str = "incremental") -> dict[str, TableState]:
    """Tables with more than ten rows are large."""
    kinds.register("scripted", "tests.doors.scripted:ScriptedSource")
    settings = ConnectorSettings(
        lake,
        once=True,
        snapshot_mode=SnapshotMode(mode),
        window_rows=CHUNK_ROWS,
        readers_max=READERS_MAX,
        sizes=TaskSizes(window_growth_max=1.0, window_seconds=600.0, windows_rows_min=10),
    )
    return sync_once(settings, CountingSource(str(script)))


if __name__ == "__main__":
    # As another process knows it: capture is given the source.
    from tests.crash import copying

    copying.sync(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
