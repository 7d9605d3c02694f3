"""`python -m tests.crash.publishing SCRIPT LAKE [HOW]`: one run of a connector, from a scripted source into Delta.

Even small files have a key index on disk, and every transaction is a batch. All work is done in this process, so it
dies wherever a failpoint is, in the driver's part or in a task's. With `divided`, no table's part fits a task. With
`spark`, tasks are Spark's: then only failpoints of the driver end this process.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.doors.scripted import ScriptedSource
from tests.running import DIVIDED, sync_once

from tailrace.engine.spark.session import session
from tailrace.lake import formats
from tailrace.lake.delta.format import DeltaFormat
from tailrace.lake.delta.rows.row_files import RowSizes
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings, TaskSizes
from tailrace.source import kinds

HERE, IS_DIVIDED, IN_SPARK = "here", "divided", "spark"


class IndexedDelta(DeltaFormat):
    """Every file's key index is saved."""

    name = "indexed-delta"

    def __init__(self) -> None:
        super().__init__(RowSizes(saved_rows_min=1))


def sync(script: Path, lake: Path, how: str = HERE) -> dict[str, TableState]:
    kinds.register("scripted", "tests.doors.scripted:ScriptedSource")
    formats.register(IndexedDelta.name, "tests.crash.publishing:IndexedDelta")
    sizes = TaskSizes() if how == HERE else DIVIDED
    settings = ConnectorSettings(lake, once=True, format=IndexedDelta.name, batch_bytes_max=1, sizes=sizes)
    spark = session(IndexedDelta()) if how == IN_SPARK else None
    return sync_once(settings, ScriptedSource(str(script)), spark)


if __name__ == "__main__":
    sync(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
