"""Versions of Delta tables that a session keeps open."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from tailrace.lake.delta._open_versions import open_version


def test_a_table_that_is_built_again_in_the_same_place_is_opened_again(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    for name in ("before", "after"):
        shutil.rmtree(path, ignore_errors=True)
        spark.createDataFrame([(1, name)], "id int, name string").write.format("delta").save(str(path))
        for _ in range(2):
            assert [row.name for row in open_version(spark, str(path), 0, keep=True).collect()] == [name]
