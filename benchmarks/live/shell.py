"""A query from the shell on a lake of many tables, next to a bare Spark that starts and counts one.

python -m benchmarks.live.shell FOLDER   the bare Spark
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

import psycopg
from benchmarks.aims import Aim
from benchmarks.figures import seconds, show
from demo.embedded import EmbeddedPostgres

SHARE_MAX = 0.25
ROWS = 10


def measure(server: EmbeddedPostgres, folder: Path, tables: int, commands: int) -> list[Aim]:
    dsn, lake = server.create_database("shell"), folder / "lake-shell"
    with psycopg.connect(dsn) as connection:
        for number in range(tables):
            connection.execute(f"create table t{number} (id int primary key, v text)")
            connection.execute(f"insert into t{number} select n, 'v' || n from generate_series(1, {ROWS}) n")
    _run("tailrace.cli.main", "sync", dsn, str(lake), "--once")
    ours, bare = [], []
    for _ in range(1 + commands):
        ours.append(_run("tailrace.cli.main", "query", str(lake), "select count(*) from t0"))
        bare.append(_run("benchmarks.live.shell", str(lake / "public" / "t0")))
    medians = statistics.median(ours[1:]), statistics.median(bare[1:])
    show(
        f"one table of {tables} counted from the shell, medians of {commands}",
        ["", "seconds"],
        [["tailrace query", seconds(medians[0])], ["a bare Spark with Delta", seconds(medians[1])]],
    )
    return [Aim("shell-query-to-bare-spark", medians[0] / medians[1], SHARE_MAX, at_most=True)]


def _run(module: str, *arguments: str) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-m", module, *arguments], check=True, capture_output=True)
    return time.perf_counter() - begun


def main() -> int:
    from delta import configure_spark_with_delta_pip
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[*]")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
    )
    spark = configure_spark_with_delta_pip(builder).getOrCreate()
    print(spark.read.format("delta").load(sys.argv[1]).count())
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
