"""The connector's Spark: started when work is large, and early where that is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial

from pyspark.sql import SparkSession

from tailrace.connector._choosing import Chooser
from tailrace.connector.events import Event, SparkStarting
from tailrace.lake.formats import format_named
from tailrace.lake.home import LakeHome
from tailrace.model.table import TableId
from tailrace.model.table_state import COPYING, TableRecord
from tailrace.settings import ConnectorSettings
from tailrace.source.door import SourceTable
from tailrace.spark.session import LazySession, session
from tailrace.spark.sharing import is_for_executors

ROW_BYTES_MIN = 64
"""Rows of most tables take more than this at the source."""


def lazy_spark(
    settings: ConnectorSettings, home: LakeHome, given: SparkSession | LazySession | None, tell: Callable[[Event], None]
) -> AbstractContextManager[LazySession]:
    """`given`, or one that is started when it is needed and says so. A lazy one that is given is several connectors':
    it stays when this one ends."""
    if isinstance(given, LazySession):
        return nullcontext(given)
    record = home.source()
    assert record is not None
    lake_format = format_named(record.format)
    start = partial(session, lake_format, home.spark_log, brief=settings.once, settings=settings.spark, lake=home.path)
    return LazySession(start, given, partial(tell, SparkStarting(settings.spark.master)), settings.spark.master)


def start_early(spark: LazySession, chooser: Chooser, records: Mapping[TableId, TableRecord]) -> None:
    """Where executors will copy a table, start beside the preparation of the source."""
    bytes_max = chooser.settings.chunk_bytes_max
    if is_for_executors(spark) and needs_spark(chooser.tables(records), records, bytes_max):
        spark.start_soon()


def needs_spark(chosen: Sequence[SourceTable], records: Mapping[TableId, TableRecord], chunk_bytes_max: int) -> bool:
    """Whether a table that is to be copied is sure to have more than one chunk, by what the source estimates."""
    to_copy = [
        each
        for each in chosen
        if each.problem is None and (each.table not in records or records[each.table].state in COPYING)
    ]
    return any(each.rows_estimated * ROW_BYTES_MIN > chunk_bytes_max for each in to_copy)
