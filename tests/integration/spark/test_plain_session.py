"""A Spark session of someone's own that was started without Delta."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psycopg
from tests.running import sync_once

from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

PROGRAM = """
import sys
from pyspark.sql import SparkSession
import tailrace
spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
tailrace.cut(spark, sys.argv[1])
"""


def test_a_session_without_delta_is_told_how_to_get_it(database: str, tmp_path: Path) -> None:
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute("create table one (id int primary key); insert into one values (1)")
    sync_once(ConnectorSettings(tmp_path / "lake", once=True), source_of(database))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "lake")], capture_output=True, text=True, check=False
    )
    *_, told = done.stderr.partition("UnfitSessionError: ")
    assert told.startswith("this Spark session has no Delta\nhint: "), done.stderr
    assert "spark = tailrace.spark_session()" in told
    assert '.config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")' in told
    assert "Py4J" not in done.stderr
