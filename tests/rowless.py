"""`python -m tests.rowless DSN LAKE EVENTS [one-thread]`: copy, follow, grow, merge and verify in a driver that cannot
touch a row.

Everything that reads, decodes, compacts, writes or compares rows raises in this process. Spark's workers import the
same modules untouched. With `one-thread` the work is done here instead, and must fail: else nothing is proven.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
from tests.doors.one_thread import OneThread

from tailrace.changes import decoding, states
from tailrace.connector.connector import Connector
from tailrace.connector.engine import spark_engine
from tailrace.lake.delta.rows import row_files
from tailrace.lake.home import LakeHome
from tailrace.settings import ConnectorSettings, SparkSettings, TaskSizes, VerifySettings
from tailrace.source.kinds import source_of
from tailrace.source.postgres.source import PostgresSource
from tailrace.verify import comparing
from tailrace.verify.verification import Verification

SMALL = TaskSizes(read_bytes=64 << 10, fold_bytes=256 << 10)
"""So that a batch of some thousand changes is divided, too."""


class RowInDriverError(BaseException):
    """The driver touched a row."""


def poison() -> None:
    """From now on, this process cannot work on rows."""

    def touched(*_: Any, **__: Any) -> Any:
        raise RowInDriverError

    for module, name in (
        (decoding, "decode_ranges"),
        (states, "compact"),
        (row_files, "read_batches"),
    ):
        setattr(module, name, touched)
    for each in (pq.ParquetWriter, comparing.BothSides):
        each.__init__ = touched
    PostgresSource.read_chunk = touched  # type: ignore[method-assign]


def main(dsn: str, lake: str, events: str, engine_name: str = "spark") -> None:
    conf = (
        ("spark.eventLog.enabled", "true"),
        ("spark.eventLog.dir", Path(events).as_uri()),
        ("spark.eventLog.compress", "false"),
    )
    spark = SparkSettings(conf=conf)
    settings = ConnectorSettings(Path(lake), once=True, spark=spark, sizes=SMALL)
    given = OneThread() if engine_name == "one-thread" else None
    poison()

    def sync() -> None:
        connector = Connector(settings, source_of(dsn), given)
        connector.start()
        connector.wait()

    sync()
    # What follows shares a session: it is started once.
    with spark_engine(LakeHome(Path(lake)), spark) as engine:
        engine.await_ready()
        given = given or engine
        for number in range(10):
            first = -1000 * (number + 1)
            execute(dsn, f"insert into a select n, 'later' from generate_series({first}, {first + 999}) n")
            if number == 4:
                execute(
                    dsn,
                    "update a set v = v || '.'; create table grown as select n as id from generate_series(1, 5000) n",
                )
                execute(dsn, "alter table grown add primary key (id)")
            sync()
        report = Verification(
            VerifySettings(Path(lake), spark=spark, sizes=SMALL), source_of(dsn), given, lambda event: None
        ).run()
    print(json.dumps({"equal": report.is_equal, "tables": {str(each.table): each.lake_rows for each in report.tables}}))


def execute(dsn: str, statements: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements.split(";"):
            connection.execute(statement)


if __name__ == "__main__":
    main(*sys.argv[1:])
