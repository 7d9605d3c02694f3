"""A lake compared with its source, by the way that a test wants."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from tests.doors.one_thread import OneThread

from tailrace.settings import TaskSizes, VerifySettings
from tailrace.source.door.source import Source
from tailrace.source.kinds import source_of
from tailrace.verify.events import TableCompared, VerifyEvent
from tailrace.verify.report import LakeReport
from tailrace.verify.verification import Verification

DIVIDED = TaskSizes(compare_bytes=4096)
"""Whatever is larger than half a page is dealt out by key."""


def verify(
    source: str | Source, lake: Path, spark: SparkSession | None = None, *tables: str, sizes: TaskSizes | None = None
) -> LakeReport:
    """By Spark's tasks, each table divided; or each table in one task, on one thread."""
    settings = VerifySettings(lake, tables, sizes=sizes or (DIVIDED if spark else TaskSizes()))
    told: list[VerifyEvent] = []
    opened = source_of(source) if isinstance(source, str) else source
    found = Verification(settings, opened, spark or OneThread(travels=True), told.append).run()
    compared = {each.table for each in found.tables if each.source_rows is not None}
    assert {event.report.table for event in told if isinstance(event, TableCompared)} >= compared
    return found
