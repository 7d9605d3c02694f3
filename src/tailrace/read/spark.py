"""Cuts in Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, TimestampType

from tailrace.changes.tail import TAIL_BYTES_MAX
from tailrace.lake.cuts import Cuts
from tailrace.lake.door import LakeTable
from tailrace.lake.frames import frame_of, spark_schema
from tailrace.log.reader import LogReader
from tailrace.model.change import COUNT, PREFIX, UNCHANGED
from tailrace.model.cut import PublishedCut
from tailrace.read._layers import ROW, Layers
from tailrace.read.key_filter import KEYS_MAX, is_not_among
from tailrace.read.names import Dialect

OPEN_TAIL_BYTES_MAX = 8 << 20
"""To open a newer base takes seconds once; this many changes cost a read a fraction of one."""
PLACE = f"{PREFIX}place"
"""Of a row among those that are equal to it."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_last_base: WeakKeyDictionary[SparkSession, dict[str, PublishedCut]] = WeakKeyDictionary()
"""By the log's id, which a lake that is built again in the same place does not have."""
quote = Dialect.SPARK.quote


class SparkReadEngine:
    """Implements `ReadEngine`."""

    dialect = Dialect.SPARK
    errors: tuple[type[Exception], ...] = (PySparkException,)

    tail_bytes_max = TAIL_BYTES_MAX

    def __init__(self, spark: SparkSession, keys_max: int = KEYS_MAX) -> None:
        """With `keys_max`, the most keys that a condition rather than a join tells apart."""
        self._spark = spark
        self._keys_max = keys_max

    def base_for(
        self, reader: LogReader, cuts: Cuts, newest: PublishedCut, seq: int, last_move: Callable[[], int]
    ) -> PublishedCut:
        """The cut this session read last, while its tail is short and the lake keeps it; else the newest.

        Any published cut before `seq` with the same copies of the same tables gives the same rows. To open a version
        that was just published takes Spark longer than to lay a few thousand more changes over one that is open.
        """
        used = _last_base.setdefault(self._spark, {}).get(reader.id)
        if (
            used is not None
            and used.seq <= newest.seq
            and used.copies == newest.copies
            and used.position.ordinal > last_move()
            and used.seq + 1 >= reader.oldest_seq
            and reader.bytes_between(used.seq, seq) <= OPEN_TAIL_BYTES_MAX
            and (used == newest or cuts.has(used))
        ):
            return used
        _last_base[self._spark][reader.id] = newest
        return newest

    def open(self, stored: LakeTable, version: int, *, keep: bool) -> DataFrame:
        return stored.open(self._spark, version, keep=keep)

    def of_arrow(self, table: pa.Table) -> DataFrame:
        return frame_of(self._spark, table)

    def shaped(self, frame: DataFrame, columns: Mapping[str, str | None], shape: Any) -> DataFrame:
        types = {field.name: field.dataType for field in spark_schema(shape)}
        return frame.select(
            [
                (sf.lit(None).cast(types[name]) if taken is None else sf.col(quote(taken))).alias(name)
                for name, taken in columns.items()
            ]
        )

    def rows_of(self, frame: DataFrame, keys: pa.Table) -> pa.Table:
        return frame.join(self.of_arrow(keys).hint("broadcast"), list(keys.column_names), "left_semi").toArrow()

    def laid_over(self, frame: DataFrame, over: Layers) -> DataFrame:
        found = frame
        if over.touched.num_rows:
            found = self._untouched(found, over.touched)
        if over.gone.num_rows:
            found = self._without(found, over.gone)
        if over.whole.num_rows:
            found = found.unionByName(self.of_arrow(over.whole))
        if over.partial.num_rows:
            found = found.unionByName(self._completed(frame, over))
        return found

    def _untouched(self, base: DataFrame, keys: pa.Table) -> DataFrame:
        stays = is_not_among(keys, self._keys_max)
        if stays is not None:
            return base.where(stays)
        return base.join(self.of_arrow(keys).hint("broadcast"), keys.column_names, "left_anti")

    def _without(self, base: DataFrame, gone: pa.Table) -> DataFrame:
        """Only rows that are equal to one that goes are counted; all others pass."""
        newer = self.of_arrow(gone).alias("newer").hint("broadcast")
        same = [part for field in base.schema for part in _is_same(field.name, field.dataType)]
        others = base.alias("base").join(newer, same, "left_anti")
        place = sf.row_number().over(Window.partitionBy(sf.col(quote(ROW))).orderBy(sf.lit(0)))
        equal = base.alias("base").join(newer, same).select("base.*", quote(COUNT), place.alias(PLACE))
        stays = sf.col(quote(PLACE)) > sf.col(quote(COUNT))
        return others.unionByName(equal.where(stays).select([quote(name) for name in others.columns]))

    def _completed(self, base: DataFrame, over: Layers) -> DataFrame:
        newer = self.of_arrow(over.partial).alias("newer").hint("broadcast")
        same = [sf.col(f"base.{quote(name)}") == sf.col(f"newer.{quote(name)}") for name in over.key]
        left_out = {name: sf.array_contains(f"newer.{quote(UNCHANGED)}", name) for name in base.columns}
        columns = [
            _merged(name).alias(name)
            if name == over.exact
            else sf.when(is_left_out, sf.col(f"base.{quote(name)}"))
            .otherwise(sf.col(f"newer.{quote(name)}"))
            .alias(name)
            for name, is_left_out in left_out.items()
        ]
        return base.alias("base").join(newer, same).select(columns)

    def show(self, view: str, frame: DataFrame) -> None:
        frame.createOrReplaceTempView(quote(view))

    def hide(self, view: str) -> None:
        self._spark.catalog.dropTempView(view)

    def sql(self, query: str) -> DataFrame:
        found = self._spark.sql(query)
        found.schema  # noqa: B018  resolves the names now
        return found

    def columns(self, frame: DataFrame) -> list[str]:
        return frame.columns

    def types(self, frame: DataFrame) -> list[str]:
        return [type_ for _, type_ in frame.dtypes]

    def rows(self, frame: DataFrame, rows_max: int | None = None) -> Iterator[tuple[Any, ...]]:
        # Spark would give instants in this process's own zone, where an hour can come twice. Names may come twice too.
        instants = [_has_instants(field.dataType) for field in frame.schema]
        plain = frame.toDF(*map(str, range(len(instants))))
        chosen = [
            _micros(plain.schema[name].dataType, name).alias(name) if at else sf.col(name)
            for name, at in zip(plain.columns, instants, strict=True)
        ]
        plain = plain.select(chosen)
        for row in plain.toLocalIterator() if rows_max is None else plain.limit(rows_max).collect():
            values = row.asDict(recursive=True).values()
            yield tuple(_instant(value) if at else value for value, at in zip(values, instants, strict=True))


def _is_same(name: str, type_: DataType) -> list[Column]:
    """Of two rows without a key; Spark itself takes -0.0 for 0.0, and NaN for NaN."""
    one, other = (sf.col(f"{side}.{quote(name)}") for side in ("base", "newer"))
    if isinstance(type_, MapType):
        one, other = sf.map_entries(one), sf.map_entries(other)
    same = [one.eqNullSafe(other)]
    if isinstance(type_, ArrayType) and isinstance(type_.elementType, DoubleType | FloatType):
        same.append(one.cast("string").eqNullSafe(other.cast("string")))
    if isinstance(type_, DoubleType | FloatType):
        same.append(_is_minus_zero(one).eqNullSafe(_is_minus_zero(other)))
    return same


def _merged(name: str) -> Column:
    """The newer row's texts, and the base row's of columns that were left out."""
    nothing = sf.create_map().cast("map<string,string>")
    left_out = sf.col(f"newer.{quote(UNCHANGED)}")
    kept = sf.map_filter(f"base.{quote(name)}", lambda column, _: sf.array_contains(left_out, column))
    both = sf.map_concat(sf.coalesce(kept, nothing), sf.coalesce(sf.col(f"newer.{quote(name)}"), nothing))
    return sf.when(sf.size(both) > 0, both)


def _is_minus_zero(value: Column) -> Column:
    return (value == 0) & value.cast("string").startswith("-")


def _has_instants(type_: DataType) -> bool:
    return isinstance(type_.elementType if isinstance(type_, ArrayType) else type_, TimestampType)


def _micros(type_: DataType, name: str) -> Column:
    return sf.transform(name, sf.unix_micros) if isinstance(type_, ArrayType) else sf.unix_micros(name)


def _instant(micros: Any) -> Any:
    if isinstance(micros, list):
        return [_instant(each) for each in micros]
    return None if micros is None else _EPOCH + timedelta(microseconds=micros)
