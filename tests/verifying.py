"""A lake compared with its source, by the way that a test wants."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from tailrace.settings import VerifySettings
from tailrace.source.door import Source
from tailrace.source.kinds import source_of
from tailrace.verify.events import TableProgressed, VerifyEvent
from tailrace.verify.report import Report
from tailrace.verify.verification import Verification


def verify(source: str | Source, lake: Path, spark: SparkSession | None = None, *tables: str) -> Report:
    """On Spark's executors alone, or all of it without Spark."""
    settings = VerifySettings(lake, tables, here_bytes_max=0 if spark else 1 << 40, chunk_bytes_max=64 << 10)
    told: list[VerifyEvent] = []
    opened = source_of(source) if isinstance(source, str) else source
    found = Verification(settings, opened, spark, told.append).run()
    progressed = {event.table for event in told if isinstance(event, TableProgressed)}
    compared = {each.table for each in found.tables if each.source_rows}
    assert progressed >= compared if spark else not progressed
    return found
