"""Delta Lake as a table format."""

from __future__ import annotations

from typing import Any, ClassVar

from tailrace.lake.delta.rows.row_files import SIZES, RowSizes
from tailrace.lake.delta.table import DeltaTable
from tailrace.storage.door import Storage

SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Delta reads a table's state with 50 tasks by default: on a few cores their start costs more than their work.
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.databricks.delta.merge.materializeSource": "none",
    # Spark brings these itself, and newer ones: a second copy only slows the start.
    "spark.jars.excludes": ",".join(
        f"{group}:*"
        for group in (
            "org.apache.hadoop",
            "org.apache.parquet",
            "org.apache.logging.log4j",
            "com.fasterxml.jackson.core",
            "com.fasterxml.jackson.datatype",
            "org.slf4j",
            "org.roaringbitmap",
            "org.xerial.snappy",
            "com.github.luben",
            "com.google.code.findbugs",
            "commons-logging",
            "commons-pool",
            "javax.annotation",
            "io.airlift",
        )
    ),
}


class DeltaFormat:
    """Tables of Delta Lake. Spark is loaded for those who write them or read them with it."""

    name: ClassVar[str] = "delta"

    def __init__(self, sizes: RowSizes = SIZES) -> None:
        self._sizes = sizes

    def configure(self, builder: Any) -> Any:
        from delta import configure_spark_with_delta_pip

        for name, value in SETTINGS.items():
            builder = builder.config(name, value)
        return configure_spark_with_delta_pip(builder)

    def table(self, place: Storage) -> DeltaTable:
        return DeltaTable(place, self._sizes)
