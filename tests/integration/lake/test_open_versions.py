"""Versions of Delta tables that a session keeps open."""

from __future__ import annotations

import shutil
from pathlib import Path

from pyspark.sql import SparkSession

from tailrace.lake.delta.format import DeltaFormat
from tailrace.storage.local import LocalFolder


def test_a_table_that_is_built_again_in_the_same_place_is_opened_again(spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "table"
    for name in ("before", "after"):
        shutil.rmtree(path, ignore_errors=True)
        spark.createDataFrame([(1, name)], "id int, name string").write.format("delta").save(str(path))
        for _ in range(2):
            opened = DeltaFormat().table(LocalFolder(path)).open(spark, 0, keep=True)
            assert [row.name for row in opened.collect()] == [name]
