"""Arrow tables as Spark's DataFrames, type for type."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType


def spark_schema(schema: pa.Schema) -> StructType:
    """A time without a zone stays one. Spark would otherwise read it in the session's zone."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def frame_of(spark: SparkSession, table: pa.Table) -> DataFrame:
    return spark.createDataFrame(table, spark_schema(table.schema))


def quote(name: str) -> str:
    """A name for Spark SQL."""
    return "`" + name.replace("`", "``") + "`"
