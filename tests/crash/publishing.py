"""`python -m tests.crash.publishing SCRIPT LAKE`: one run of a connector, from a scripted source into Delta tables.

Even small files have a key index on disk, and every transaction is a batch. With a third argument, `executors`, Spark
publishes them.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.doors.scripted import ScriptedSource
from tests.running import sync_once

from tailrace.connector import _publishing
from tailrace.lake.delta import _locating
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings
from tailrace.source import kinds


def sync(script: Path, lake: Path, *, on_executors: bool = False) -> dict[str, TableState]:
    kinds.register("scripted", "tests.doors.scripted:ScriptedSource")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_locating, "SAVED_ROWS_MIN", 1)
        if on_executors:
            patch.setattr(_publishing, "DRIVER_BYTES_MAX", 0)
        return sync_once(ConnectorSettings(lake, once=True, batch_bytes_max=1), ScriptedSource(str(script)))


if __name__ == "__main__":
    sync(Path(sys.argv[1]), Path(sys.argv[2]), on_executors="executors" in sys.argv[3:])
