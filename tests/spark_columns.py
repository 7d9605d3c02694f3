"""What Spark's readers see of a lake table's columns."""

from __future__ import annotations

from pyspark.sql.types import StructType

from tailrace.lake.stamp import commented_column
from tailrace.model.table import Column


def lake_columns(shape: StructType) -> list[Column]:
    """With what their comments say of the source's."""
    return [
        commented_column(field.name, field.dataType.simpleString(), field.metadata.get("comment", ""))
        for field in shape
    ]
