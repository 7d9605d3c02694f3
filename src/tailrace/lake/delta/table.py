"""One lake table in Delta Lake's format.

Every change to the table is one atomic commit whose metadata is the stamp. Delta takes a merge's metadata from the
session, so tables that are published side by side need a session each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import delta.tables
import pyarrow as pa
import pyarrow.compute as pc
from delta import exceptions
from pyspark.sql import Column, DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as sf

from tailrace.lake.columns import comment, lake_columns
from tailrace.lake.delta import _durability, _recovery
from tailrace.lake.delta._commit_log import CommitLog
from tailrace.lake.delta._names import properties, require_addable, require_possible
from tailrace.lake.delta._open_versions import open_version
from tailrace.lake.door import ConflictError, TableVersion
from tailrace.lake.frames import frame_of, quote
from tailrace.lake.stamp import Stamp
from tailrace.model.change import DELETED, FRESH, ORIGIN, UNCHANGED
from tailrace.model.following import steps
from tailrace.model.table import Column as TableColumn
from tailrace.model.table import TableSchema

USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
SKIP_EMPTY_COMMITS = "spark.databricks.delta.skipRecordingEmptyCommits"
BOUNDED_TYPES = ("smallint", "int", "bigint", "string")
"""Types whose order is the same in Arrow and in Spark, and whose values Python passes on unchanged."""
CONFLICTS = (
    exceptions.DeltaConcurrentModificationException,
    exceptions.ConcurrentAppendException,
    exceptions.ConcurrentDeleteDeleteException,
    exceptions.ConcurrentDeleteReadException,
    exceptions.ConcurrentTransactionException,
    exceptions.ConcurrentWriteException,
    exceptions.MetadataChangedException,
    exceptions.ProtocolChangedException,
)
"""In Python the particular ones do not derive from the general one."""


class DeltaTable:
    """The Delta table in one folder."""

    def __init__(self, spark: SparkSession, path: Path) -> None:
        self._spark = spark
        self._path = path
        self._name = f"delta.{quote(str(path))}"
        self._log = CommitLog(path)

    def version(self, at: int | None = None) -> TableVersion | None:
        number = self._log.newest() if at is None else at
        return TableVersion(number, self._log.stamp(number)) if number is not None and self._log.has(number) else None

    def make_durable(self, since: int | None) -> None:
        _durability.make_durable(self._log, since)

    def recover(self, trusted: int | None, aside: Path) -> list[int]:
        moved = _recovery.recover(self._log, trusted, aside)
        if moved:
            jvm = self._spark._jvm
            assert jvm is not None
            place = jvm.org.apache.hadoop.fs.Path(str(self._path))
            # Delta remembers the newest version of each table.
            jvm.org.apache.spark.sql.delta.DeltaLog.invalidateCache(self._spark._jsparkSession, place)
        return moved

    def _newest(self) -> int:
        newest = self._log.newest()
        assert newest is not None
        return newest

    def land(self, rows: DataFrame, schema: TableSchema, stamp: Stamp) -> int:
        require_possible(schema.table, schema.names)
        described = [
            sf.col(quote(column.name)).alias(column.name, metadata={"comment": comment(column)})
            for column in schema.columns
        ]
        self._replace(rows.select(described), stamp, new_shape=True)
        return self._newest()

    def _replace(self, rows: DataFrame, stamp: Stamp, *, new_shape: bool) -> None:
        writer = self._writer(rows, "overwrite", stamp).option("overwriteSchema", str(new_shape))
        with _conflicts():
            if self._log.newest() is None:
                writer = writer.options(**properties(rows.columns))
            elif new_shape:
                self._set_properties(properties(rows.columns))
            writer.save(str(self._path))

    def _writer(self, rows: DataFrame, mode: str, stamp: Stamp) -> DataFrameWriter:
        # Without rows there must be a version with a stamp too.
        rows.sparkSession.conf.set(SKIP_EMPTY_COMMITS, "false")
        return rows.write.format("delta").mode(mode).option("userMetadata", stamp.to_json())

    def _set_properties(self, wanted: dict[str, str]) -> None:
        """Set what the columns demand. A feature that is only useful stays as a user may have set it."""
        present = {row["key"]: row["value"] for row in self._spark.sql(f"show tblproperties {self._name}").collect()}
        missing = [
            f"'{name}' = '{value}'" for name, value in wanted.items() if value not in ("true", present.get(name))
        ]
        if missing:
            self._spark.sql(f"alter table {self._name} set tblproperties ({', '.join(missing)})")

    def evolve(self, schema: TableSchema) -> int:
        needed = steps(lake_columns(self._read().schema), schema)
        require_addable(schema.table, [*needed.rename.values(), *(column.name for column in needed.add)])
        statements = [f"drop column {quote(name)}" for name in needed.drop]
        statements += [f"rename column {quote(old)} to {quote(new)}" for old, new in needed.rename.items()]
        if needed.add:
            statements.append(f"add columns ({_ddl(needed.add)})")
        with _conflicts():
            for statement in statements:
                self._spark.sql(f"alter table {self._name} {statement}")
        return self._newest()

    def rows_of(self, keys: pa.Table) -> pa.Table:
        wanted = frame_of(self._spark, keys)
        return self._read().join(wanted.hint("broadcast"), list(keys.column_names), "left_semi").toArrow()

    def open(self, version: int, *, keep: bool = False) -> DataFrame:
        return open_version(self._spark, str(self._path), version, keep=keep)

    def publish(
        self, states: pa.Table | DataFrame, schema: TableSchema, stamp: Stamp, *, replaces_all: bool = False
    ) -> int:
        if replaces_all:
            frame = self._frame(states)
            kept = frame.where(~sf.col(quote(DELETED))).select([quote(name) for name in schema.names])
            self._replace(kept, stamp, new_shape=False)
        elif isinstance(states, pa.Table):
            self._fold(self._frame(states.drop_columns([ORIGIN])), schema, stamp, _bounds(states, schema.key[0]))
        else:
            # A merge reads its source twice, and refuses a cached one.
            states = states.drop(ORIGIN).localCheckpoint()
            old, key = sf.col(quote(DELETED)) | ~sf.col(quote(FRESH)), sf.col(quote(schema.key[0]))
            found = states.where(old).agg(sf.count("*"), sf.min(key), sf.max(key)).collect()[0]
            self._fold(states, schema, stamp, (found[1], found[2]) if found[0] else None)
        return self._newest()

    def _frame(self, states: pa.Table | DataFrame) -> DataFrame:
        return frame_of(self._spark, states) if isinstance(states, pa.Table) else states

    def _fold(self, states: DataFrame, schema: TableSchema, stamp: Stamp, bounds: tuple[object, object] | None) -> None:
        with _conflicts():
            if bounds is None:
                # Keys that were not there before cannot match: nothing to look for.
                rows = states.select([quote(name) for name in schema.names])
                self._writer(rows, "append", stamp).save(str(self._path))
            else:
                self._merge(states, schema, stamp, bounds)

    def _merge(self, states: DataFrame, schema: TableSchema, stamp: Stamp, bounds: tuple[object, object]) -> None:
        first = sf.col(f"t.{quote(schema.key[0])}")
        matches = ~sf.col(f"s.{quote(FRESH)}")
        if schema.column(schema.key[0]).type in BOUNDED_TYPES:
            matches &= first.between(sf.lit(bounds[0]), sf.lit(bounds[1]))
        for name in schema.key:
            matches &= sf.col(f"t.{quote(name)}") == sf.col(f"s.{quote(name)}")
        updates: dict[str, str | Column] = {quote(name): "null" for name in self._read().columns}
        inserts: dict[str, str | Column] = {quote(name): _whole(name) for name in schema.names}
        with self._stamping(stamp):
            (
                delta.tables.DeltaTable.forPath(self._spark, str(self._path))
                .alias("t")
                .merge(states.alias("s"), matches)
                .whenMatchedDelete(f"s.{quote(DELETED)}")
                .whenMatchedUpdate(set=updates | {quote(name): _kept(name) for name in schema.names})
                .whenNotMatchedInsert(f"not s.{quote(DELETED)}", inserts)
                .execute()
            )

    @contextmanager
    def _stamping(self, stamp: Stamp) -> Iterator[None]:
        """What the session commits inside has this stamp. Nothing after it: an older stamp on a newer version would
        have the table take again what it has."""
        self._spark.conf.set(SKIP_EMPTY_COMMITS, "false")
        self._spark.conf.set(USER_METADATA, stamp.to_json())
        try:
            yield
        finally:
            self._spark.conf.unset(USER_METADATA)

    def _read(self) -> DataFrame:
        return self._spark.read.format("delta").load(str(self._path))


@contextmanager
def _conflicts() -> Iterator[None]:
    try:
        yield
    except CONFLICTS as error:
        raise ConflictError(f"another writer was first: {str(error).splitlines()[0]}") from None


def _literal(name: str) -> str:
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _left_out(name: str) -> str:
    return f"coalesce(array_contains(s.{quote(UNCHANGED)}, {_literal(name)}), false)"


def _kept(name: str) -> str:
    return f"if({_left_out(name)}, t.{quote(name)}, s.{quote(name)})"


def _whole(name: str) -> str:
    # A partial row whose base row is missing would be a hole in the copy: stop instead.
    message = _literal(f"row is missing in the lake: column {name} has no value")
    return f"if({_left_out(name)}, raise_error({message}), s.{quote(name)})"


def _bounds(states: pa.Table, column: str) -> tuple[object, object] | None:
    """Smallest and largest key that can match, so that a merge skips files without either; None if none can."""
    if pc.all(pc.and_(states.column(FRESH), pc.invert(states.column(DELETED)))).as_py():
        return None
    old = states.filter(pc.invert(states.column(FRESH))).column(column)
    extremes = pc.min_max(old)
    return extremes["min"].as_py(), extremes["max"].as_py()


def _ddl(columns: Sequence[TableColumn]) -> str:
    return ", ".join(f"{quote(column.name)} {column.type} comment {_literal(comment(column))}" for column in columns)
