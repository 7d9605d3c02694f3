"""`python -m tests.crash.publishing SCRIPT LAKE`: one run of a connector, from a scripted source into Delta tables.

Even small files have a key index on disk, and every transaction is a batch.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.doors.scripted import ScriptedSource
from tests.running import sync_once

from tailrace.lake.delta import _locating
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings
from tailrace.source import kinds


def sync(script: Path, lake: Path) -> dict[str, TableState]:
    kinds.register("scripted", "tests.doors.scripted:ScriptedSource")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_locating, "SAVED_ROWS_MIN", 1)
        return sync_once(ConnectorSettings(lake, once=True, batch_bytes_max=1), ScriptedSource(str(script)))


if __name__ == "__main__":
    sync(Path(sys.argv[1]), Path(sys.argv[2]))
