"""A lake whose steps a benchmark takes one at a time: copy the rows, fill the log, publish."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from tailrace.connector.connector import Connector
from tailrace.connector.drop import drop_source
from tailrace.connector.publish.applier import Applier
from tailrace.connector.publish.opening import LakeParts
from tailrace.connector.run_opening import capture_order
from tailrace.connector.start.capture_process import CaptureProcess
from tailrace.engine.door import Engine
from tailrace.engine.spark.engine import SparkEngine
from tailrace.engine.spark.session import LazySession, session
from tailrace.errors import TailraceError
from tailrace.lake.door import LakeFormat
from tailrace.lake.formats import format_named
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.table import TableId
from tailrace.settings import ConnectorSettings, TaskSizes
from tailrace.source.door.values import Definition
from tailrace.source.kinds import source_of

PATIENCE_SECONDS = 1800.0


class SteppedLake:
    """The parts that a connector joins, in a benchmark's hands. Publishing is exactly a connector's: the same batches,
    the same syncs, the same cuts."""

    def __init__(
        self, dsn: str, path: Path, spark: SparkSession | Engine | None = None, sizes: TaskSizes | None = None
    ) -> None:
        self._source = source_of(dsn)
        self._settings = ConnectorSettings(path, once=True, sizes=sizes or TaskSizes())
        self._given_spark = spark
        self.home = LakeHome(path)

    def copy(self) -> float:
        """Copy the rows that there are, or catch up; the seconds it took."""
        begun = time.perf_counter()
        connector = Connector(self._settings, self._source, self._given_spark)
        connector.start()
        if not connector.wait(PATIENCE_SECONDS):
            raise TimeoutError("the connector did not end")
        return time.perf_counter() - begun

    def fill_log(self) -> float:
        """Take everything that is committed now into the log; the seconds it took."""
        record = self.home.source()
        assert record is not None
        target = self._source.now().ordinal
        begun = time.perf_counter()
        with CaptureProcess(capture_order(self._source, record, self.home.log, self._settings)) as capture:
            reader = LogReader(self.home.log)
            while reader.refresh().ordinal < target:
                capture.check()
                if time.perf_counter() - begun > PATIENCE_SECONDS:
                    raise TimeoutError("capture did not get there")
                time.sleep(0.02)
            return time.perf_counter() - begun

    @contextmanager
    def publisher(self) -> Iterator[Publisher]:
        record = self.home.source()
        assert record is not None
        lake_format = format_named(record.format)

        with self._engine(lake_format) as engine:
            applier = Applier(LakeParts(engine, self.home, lake_format, type(self._source)), self._settings, _Strict())
            try:
                yield Publisher(applier, self.home, self._settings)
            finally:
                applier.close()

    def _engine(self, lake_format: LakeFormat) -> AbstractContextManager[Engine]:
        """The one that was given, which stays, or a Spark that ends with the publisher. It is tuned to last: a running
        connector's is."""
        given = self._given_spark
        if given is not None and not isinstance(given, SparkSession):
            return nullcontext(given)
        start = partial(session, lake_format, self.home.runs.spark_log, brief=False)
        return SparkEngine(LazySession(start, given))

    def drop(self) -> None:
        """Remove what the source keeps for the lake, and the lake."""
        drop_source(self._source, self.home.lake)
        shutil.rmtree(self.home.shared_folder)


class Publisher:
    """Publishes what the log has. Stays warm from one batch to the next, as a running connector does."""

    def __init__(self, applier: Applier, home: LakeHome, settings: ConnectorSettings) -> None:
        self._applier = applier
        self._settings = settings
        self.reader = LogReader(home.log)
        for table, record in home.tables.load().items():
            version = applier.opener.recover(table)
            assert version is not None
            applier.join(self.reader, table, record, version, None)

    @property
    def seq(self) -> int:
        """The newest transaction that is published."""
        return self._applier.seq or 0

    def relation(self, table: TableId) -> int:
        return self._applier.tables[table].relation

    def publish(self, upto: int | None = None) -> float:
        """Up to a transaction, or to the log's end, in batches; the seconds it took."""
        wanted = self.reader.refresh().seq if upto is None else upto
        begun = time.perf_counter()
        while self.seq < wanted:
            end = min(wanted, self.reader.last_within(self.seq, self._settings.batch_bytes_max))
            if self._applier.advance(self.reader, end) is None:
                raise RuntimeError("a batch was not published")
        return time.perf_counter() - begun


class _Strict:
    """A table that fails fails the benchmark."""

    def table_failed(self, table: TableId, error: TailraceError) -> None:
        raise error

    def table_followed(self, table: TableId, definition: Definition | None, version: int) -> None:
        pass
