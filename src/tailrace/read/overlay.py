"""A table as of a commit that is not published yet: the published rows with newer states laid over.

base   k1 k2 k3            published version
tail   k2' k3 deleted k4   compacted states of the log after it
view   k1 k2' k4
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tailrace.changes.moves import fill_moved
from tailrace.lake.columns import lake_columns
from tailrace.lake.frames import frame_of, quote, spark_schema
from tailrace.model.change import DELETED, FRESH, ORIGIN, UNCHANGED, row_schema
from tailrace.model.following import steps
from tailrace.model.table import TableSchema


def followed(base: DataFrame, schema: TableSchema) -> DataFrame:
    """`base` in the schema's shape. `ResyncError` where it cannot follow."""
    needed = steps(lake_columns(base.schema), schema)
    if not needed:
        return base
    present = {needed.rename.get(name, name): name for name in base.columns if name not in needed.drop}
    types = {field.name: field.dataType for field in spark_schema(row_schema(schema))}
    columns = [
        sf.col(quote(present[name])).alias(name) if name in present else sf.lit(None).cast(types[name]).alias(name)
        for name in schema.names
    ]
    return base.select(columns)


def overlay(spark: SparkSession, base: DataFrame, states: pa.Table, schema: TableSchema) -> DataFrame:
    """`base` with `states` laid over, lazily; columns that only one side has are null in the other."""
    key = schema.key
    states = fill_moved(states, schema, lambda keys: _rows_of(spark, base, keys))
    touched = states.filter(pc.invert(states.column(FRESH))).select(list(key))
    kept = base
    if touched.num_rows:
        kept = base.join(frame_of(spark, touched).hint("broadcast"), list(key), "left_anti")
    upserts = states.filter(pc.invert(states.column(DELETED))).drop_columns([DELETED, FRESH, ORIGIN])
    partial = pc.is_valid(upserts.column(UNCHANGED))
    whole = upserts.filter(pc.invert(partial)).drop_columns([UNCHANGED])
    kept = _union(kept, frame_of(spark, whole) if whole.num_rows else None)
    completed = _completed(spark, base, upserts.filter(partial), key)
    return _union(kept, completed)


def _union(frame: DataFrame, other: DataFrame | None) -> DataFrame:
    return frame if other is None else frame.unionByName(other, allowMissingColumns=True)


def _completed(spark: SparkSession, base: DataFrame, partial: pa.Table, key: Sequence[str]) -> DataFrame | None:
    """Rows that left columns out, filled from the published row of the same key."""
    if not partial.num_rows:
        return None
    newer = frame_of(spark, partial).alias("newer").hint("broadcast")
    joined = base.alias("base").join(newer, [sf.col(f"base.{quote(k)}") == sf.col(f"newer.{quote(k)}") for k in key])
    columns = []
    for name in partial.column_names:
        if name == UNCHANGED:
            continue
        value = sf.col(f"newer.{quote(name)}")
        if name in base.columns:
            left_out = sf.coalesce(sf.array_contains(f"newer.{quote(UNCHANGED)}", name), sf.lit(False))
            value = sf.when(left_out, sf.col(f"base.{quote(name)}")).otherwise(value)
        columns.append(value.alias(name))
    return joined.select(columns)


def _rows_of(spark: SparkSession, base: DataFrame, keys: pa.Table) -> pa.Table:
    return base.join(frame_of(spark, keys).hint("broadcast"), list(keys.column_names), "left_semi").toArrow()
