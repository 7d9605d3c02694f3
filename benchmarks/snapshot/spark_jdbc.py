"""Spark's own JDBC reader writes the tables as Delta: a rival, run as a process of its own.

python -m benchmarks.snapshot.spark_jdbc DSN FOLDER newcomer|tuned

A newcomer reads each table with one connection and the default fetch size, which is all rows at once; the heap is large
enough for that, because the default one is not. Tuned: two partitions, 10,000 rows a fetch, and a first pass over
everything that does not count. Prints the seconds of the pass that counts, Spark's start not included.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from benchmarks.figures import PeakMemory
from benchmarks.snapshot.tpch import TABLES

JDBC = "org.postgresql:postgresql:42.7.7"
FETCH_ROWS = "10000"
PARTITIONS = 2
HEAP = "8g"


def main() -> int:
    dsn, folder, how = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    with PeakMemory() as memory:
        spark = _session()
        for _ in range(2 if how == "tuned" else 1):
            shutil.rmtree(folder, ignore_errors=True)
            begun = time.perf_counter()
            for table, key in TABLES.items():
                _read(spark, dsn, table, key if how == "tuned" else None).write.format("delta").save(
                    str(folder / table)
                )
            took = time.perf_counter() - begun
        spark.stop()
    print(json.dumps({"seconds": took, **memory.mb}), flush=True)
    return 0


def _session() -> Any:
    from delta import configure_spark_with_delta_pip
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[*]")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.driver.memory", HEAP)
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.ui.enabled", "false")
    )
    return configure_spark_with_delta_pip(builder, extra_packages=[JDBC]).getOrCreate()


def _read(spark: Any, dsn: str, table: str, key: str | None) -> Any:
    address = urlsplit(dsn)
    url = f"jdbc:postgresql://{address.hostname}:{address.port}{address.path}"
    options = {"user": str(address.username), "driver": "org.postgresql.Driver"}
    if key is None:
        return spark.read.jdbc(url, table, properties=options)
    with psycopg.connect(dsn) as connection:
        low, high = connection.execute(f"select min({key}), max({key}) from {table}").fetchone() or (0, 0)
    return spark.read.jdbc(url, table, key, low, high + 1, PARTITIONS, properties={**options, "fetchsize": FETCH_ROWS})


if __name__ == "__main__":
    sys.exit(main())
