"""`python -m tests.doors.sync SCRIPT LAKE`: one run of a connector on the second source and the second lake."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.doors.one_thread import OneThread
from tests.doors.scripted import ScriptedSource

from tailrace.connector.connector import Connector
from tailrace.lake import formats
from tailrace.settings import ConnectorSettings
from tailrace.source import kinds

PARTICULAR = ("psycopg", "delta", "tailrace.source.postgres", "tailrace.lake.delta")


def main(script: str, lake: str) -> None:
    """Catch up, then say which particular databases and lakes were imported on the way."""
    kinds.register("scripted", "tests.doors.scripted:ScriptedSource")
    formats.register("parquet", "tests.doors.parquet_lake:ParquetFormat")
    settings = ConnectorSettings(Path(lake), format="parquet", once=True)
    connector = Connector(settings, ScriptedSource(script), OneThread())
    connector.start()
    connector.wait()
    print("particular modules:", [name for name in sys.modules if name.startswith(PARTICULAR)])


if __name__ == "__main__":
    main(*sys.argv[1:])
