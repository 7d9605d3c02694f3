"""Capture in a process of its own that a failpoint can kill."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tailrace.log.write.writer import LogWriter
from tailrace.source.door.control import CaptureControl
from tailrace.source.postgres.source import PostgresSource


def main() -> None:
    order = json.loads(sys.argv[1])
    source = PostgresSource(**order["source"])
    writer = LogWriter.open(Path(order["log"]), source.identify())
    source.capture(order["claim"], writer, CaptureControl(lambda _: None, keep_seconds=0.0))


if __name__ == "__main__":
    main()
