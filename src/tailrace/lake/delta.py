"""One lake table in Delta Lake's format.

Every change to the table is one atomic commit that carries a `Stamp`, so data and position
cannot disagree, whatever instruction we die at. Only one process writes a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import delta.tables
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from tailrace.lake.evolve import added_columns, comment, lake_columns
from tailrace.lake.frames import frame_of
from tailrace.lake.stamp import Stamp
from tailrace.model.table import Column as TableColumn
from tailrace.model.table import TableSchema

USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
BOUNDED_TYPES = ("smallint", "int", "bigint", "string")
"""Types whose order is the same in Arrow and in Spark, and whose values Python passes on unchanged."""
_ODD_NAME = set(" ,;{}()\n\t=")


@dataclass(frozen=True)
class Version:
    """A version of a Delta table and the newest stamp at or before it."""

    number: int
    stamp: Stamp | None


class DeltaTable:
    """The Delta table of one source table. Not shared between threads: it has a session of its own."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        # Delta takes a commit's metadata from the session, so tables published side by side need one each.
        self.spark = spark.newSession()
        self._path = path
        self._name = f"delta.`{path}`"

    @property
    def exists(self) -> bool:
        return (self._path / "_delta_log").is_dir()

    def version(self) -> Version:
        """The table's newest version. Commits of others (an optimise, say) pass the stamp on."""
        for limit in ("limit 5", ""):
            rows = self.spark.sql(f"describe history {self._name} {limit}").collect()
            stamps = (Stamp.from_json(row["userMetadata"]) for row in rows)
            stamp = next((stamp for stamp in stamps if stamp), None)
            if stamp or not limit:
                break
        return Version(int(rows[0]["version"]), stamp)

    def create(self, schema: TableSchema) -> None:
        """An empty table with no stamp: its snapshot is still to come."""
        properties = {"delta.enableDeletionVectors": "true"}
        if any(set(name) & _ODD_NAME for name in schema.names):
            properties["delta.columnMapping.mode"] = "name"
        listed = ", ".join(f"'{name}' = '{value}'" for name, value in properties.items())
        self.spark.sql(
            f"create table if not exists {self._name} ({_ddl(schema.columns)}) using delta tblproperties ({listed})"
        )

    def copy(self, rows: DataFrame, schema: TableSchema, stamp: Stamp) -> None:
        """Make a snapshot's rows the table's whole content, and its shape the table's."""
        described = [
            sf.col(quote(column.name)).alias(column.name, metadata={"comment": comment(column)})
            for column in schema.columns
        ]
        self._replace(rows.select(described), stamp, new_shape=True)

    def _replace(self, rows: DataFrame, stamp: Stamp, *, new_shape: bool) -> None:
        writer = rows.write.format("delta").mode("overwrite").option("userMetadata", stamp.to_json())
        writer.option("overwriteSchema", str(new_shape)).save(str(self._path))

    def evolve(self, schema: TableSchema) -> None:
        """Add the columns the table lacks. Anything but an addition is a definite error."""
        added = added_columns(lake_columns(self._read().schema), schema)
        if added:
            self.spark.sql(f"alter table {self._name} add columns ({_ddl(added)})")

    def rows_of(self, keys: pa.Table) -> pa.Table:
        """The rows with these keys; `keys` has one column for each key column."""
        wanted = frame_of(self.spark, keys)
        return self._read().join(wanted.hint("broadcast"), list(keys.column_names), "left_semi").toArrow()

    def newest_version(self) -> int:
        """The number of the newest commit."""
        return max(int(file.stem) for file in (self._path / "_delta_log").glob("*[0-9].json"))

    def replace_with(self, states: DataFrame, schema: TableSchema, stamp: Stamp) -> None:
        """Make `states`, none of which may lean on the base, the table's whole content."""
        kept = states.where("not _deleted").select([quote(name) for name in schema.names])
        self._replace(kept, stamp, new_shape=False)

    def frame(self, rows: pa.Table) -> DataFrame:
        """Rows in this table's session."""
        return frame_of(self.spark, rows)

    def publish(self, states: pa.Table, schema: TableSchema, stamp: Stamp) -> None:
        """Fold compacted states into the table in one commit."""
        only_new = pc.all(pc.and_(states.column("_fresh"), pc.invert(states.column("_deleted")))).as_py()
        frame = self.frame(states.drop_columns(["_origin"]))
        self._fold(frame, schema, stamp, None if only_new else _bounds(states, schema.key[0]))

    def publish_frame(self, states: DataFrame, schema: TableSchema, stamp: Stamp) -> None:
        """The same for states that executors hold."""
        # A merge reads its source twice, and refuses a cached one.
        states = states.drop("_origin").localCheckpoint()
        old, key = sf.col("_deleted") | ~sf.col("_fresh"), sf.col(quote(schema.key[0]))
        found = states.where(old).agg(sf.count("*"), sf.min(key), sf.max(key)).collect()[0]
        self._fold(states, schema, stamp, (found[1], found[2]) if found[0] else None)

    def _fold(self, states: DataFrame, schema: TableSchema, stamp: Stamp, bounds: tuple[object, object] | None) -> None:
        if bounds is None:
            # Keys that were not there before cannot match: nothing to look for.
            rows = states.select([quote(name) for name in schema.names])
            rows.write.format("delta").mode("append").option("userMetadata", stamp.to_json()).save(str(self._path))
        else:
            self._merge(states, schema, stamp, bounds)

    def _merge(self, states: DataFrame, schema: TableSchema, stamp: Stamp, bounds: tuple[object, object]) -> None:
        self.spark.conf.set(USER_METADATA, stamp.to_json())
        first = sf.col(f"t.{quote(schema.key[0])}")
        matches = ~sf.col("s._fresh")
        if schema.column(schema.key[0]).type in BOUNDED_TYPES:
            matches &= first.between(sf.lit(bounds[0]), sf.lit(bounds[1]))
        for name in schema.key:
            matches &= sf.col(f"t.{quote(name)}") == sf.col(f"s.{quote(name)}")
        updates: dict[str, str | Column] = {quote(name): "null" for name in self._read().columns}
        inserts: dict[str, str | Column] = {quote(name): _whole(name) for name in schema.names}
        (
            delta.tables.DeltaTable.forPath(self.spark, str(self._path))
            .alias("t")
            .merge(states.alias("s"), matches)
            .whenMatchedDelete("s._deleted")
            .whenMatchedUpdate(set=updates | {quote(name): _kept(name) for name in schema.names})
            .whenNotMatchedInsert("not s._deleted", inserts)
            .execute()
        )

    def _read(self) -> DataFrame:
        return self.spark.read.format("delta").load(str(self._path))


def quote(name: str) -> str:
    """A column name for Spark SQL."""
    return "`" + name.replace("`", "``") + "`"


def _literal(name: str) -> str:
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _left_out(name: str) -> str:
    return f"coalesce(array_contains(s._unchanged, {_literal(name)}), false)"


def _kept(name: str) -> str:
    return f"if({_left_out(name)}, t.{quote(name)}, s.{quote(name)})"


def _whole(name: str) -> str:
    # A partial row whose base row is missing would be a hole in the copy: stop instead.
    message = _literal(f"row is missing in the lake: column {name} has no value")
    return f"if({_left_out(name)}, raise_error({message}), s.{quote(name)})"


def _bounds(states: pa.Table, column: str) -> tuple[object, object]:
    """Smallest and largest key that can match, so a merge skips the files that hold neither."""
    old = states.filter(pc.invert(states.column("_fresh"))).column(column)
    extremes = pc.min_max(old)
    return extremes["min"].as_py(), extremes["max"].as_py()


def _ddl(columns: Sequence[TableColumn]) -> str:
    return ", ".join(f"{quote(column.name)} {column.type} comment {_literal(comment(column))}" for column in columns)


def key_columns(states: pa.Table, key: Sequence[str]) -> pa.Table:
    """The key columns of the states that the base may have."""
    return states.filter(pc.invert(states.column("_fresh"))).select(list(key))
