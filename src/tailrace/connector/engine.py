"""The engine of a lake: Spark, started when there are rows to move."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from pyspark.sql import SparkSession

from tailrace.connector.events import Event, SparkShown, SparkStarting
from tailrace.engine.door import Engine
from tailrace.engine.spark.engine import SparkEngine, ui_address
from tailrace.engine.spark.session import LazySession, session
from tailrace.lake.formats import format_named
from tailrace.lake.home import LakeHome
from tailrace.settings import ConnectorSettings, SparkSettings


def engine_of(
    settings: ConnectorSettings, home: LakeHome, given: SparkSession | Engine | None, tell: Callable[[Event], None]
) -> AbstractContextManager[Engine]:
    """`given`, or a Spark of this lake's own. An engine that is given is several connectors': it stays when this one
    ends."""
    if given is not None and not isinstance(given, SparkSession):
        return nullcontext(given)
    return spark_engine(home, settings.spark, given, tell, brief=settings.once)


def spark_engine(
    home: LakeHome,
    settings: SparkSettings,
    given: SparkSession | None = None,
    tell: Callable[[Event], None] = lambda event: None,
    *,
    log_path: Path | None = None,
    brief: bool = True,
) -> SparkEngine:
    """A session that is given, or one that is started when it is first needed and says so, and where its page is if it
    shows one."""
    record = home.source()
    assert record is not None
    lake_format = format_named(record.format)

    def start() -> SparkSession:
        tell(SparkStarting(settings.master))
        path = log_path or home.runs.spark_log
        started = session(lake_format, path, brief=brief, settings=settings, lake=home.shared_folder)
        address = ui_address(started) if settings.ui else None
        if address is not None:
            tell(SparkShown(address))
        return started

    return SparkEngine(LazySession(start, given, master=settings.master))
