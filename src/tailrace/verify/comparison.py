"""Where the rows of a source table and of its lake table differ: checksums first, keys where they disagree.

Each row has a hash over all its columns, and belongs to a bucket by its key. A bucket has a count and a sum of hashes
for each side. Only the rows of buckets that disagree are looked at again, key by key:

    source   k1 k2  │ k3  k4 k5     bucket 0: 2 rows, sum 17    bucket 1: 3 rows, sum 21
    lake     k1 k2  │ k3' k4        bucket 0: 2 rows, sum 17    bucket 1: 2 rows, sum 13   k3 differs, k5 is missing

Rows are told apart exactly: null from empty, NaN from null, -0.0 from 0.0, a row from the same row twice. Keys are one
where the source and the lake say so (`model.key`). Both sides are read by Spark's executors; what comes back is a row a
bucket and the keys that are asked for. Nothing here knows a source or a lake.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, BinaryType, DataType, DoubleType, FloatType

from tailrace.lake.frames import quote
from tailrace.verify.report import Difference, KeyDifference

BUCKETS = 4096
_LOW_BITS = 0xFFFFFFFF


@dataclass(frozen=True)
class Sides:
    """One table, twice. Both frames have these columns, of the same types; they may have them in another order."""

    source: DataFrame
    lake: DataFrame
    columns: Sequence[str]
    key: Sequence[str]
    """Columns that tell rows apart; a key that several rows have is no error here."""

    def select(self, columns: Sequence[Column], buckets: Sequence[int] | None = None) -> DataFrame:
        """Both sides' rows with these columns, and `in_source`; of some buckets alone, or all."""
        both = []
        for frame, in_source in ((self.source, True), (self.lake, False)):
            kept = frame if buckets is None else frame.where(self.bucket.isin(list(buckets)))
            both.append(kept.select(sf.lit(in_source).alias("in_source"), *columns))
        return both[0].unionAll(both[1])

    @property
    def bucket(self) -> Column:
        # Spark's hash takes -0.0 for 0.0: equal keys fall into one bucket.
        return sf.pmod(sf.xxhash64(*(sf.col(quote(name)) for name in self.key)), sf.lit(BUCKETS)).cast("int")

    def hash_of(self, names: Sequence[str]) -> Column:
        """64 bits over these columns of a row."""
        return sf.xxhash64(*(part for name in names for part in _parts(name, self.source.schema[name].dataType)))


@dataclass(frozen=True)
class Checksums:
    """What the buckets say."""

    source_rows: int
    lake_rows: int
    differing: Sequence[int]
    """Buckets that disagree; without one, the two sides have the same rows."""


@dataclass(frozen=True)
class DifferingKeys:
    """Keys whose rows differ: how many in each way, and the first few."""

    counts: dict[Difference, int] = field(default_factory=dict)
    shown: tuple[KeyDifference, ...] = ()


def checksums(sides: Sides) -> Checksums:
    """One pass over both sides."""
    rows = sides.select([sides.bucket.alias("bucket"), sides.hash_of(sides.columns).alias("hash")])
    buckets = rows.groupBy("bucket").agg(*_sums()).collect()
    return Checksums(
        source_rows=sum(row.source_rows for row in buckets),
        lake_rows=sum(row.lake_rows for row in buckets),
        differing=sorted(row.bucket for row in buckets if row.source_rows != row.lake_rows or row.high or row.low),
    )


def differing_keys(sides: Sides, buckets: Sequence[int], shown_max: int) -> DifferingKeys:
    """Another pass over both sides: every key in these buckets whose rows differ."""
    names = {f"column{index}": name for index, name in enumerate(sides.columns)}
    keys = [sf.col(quote(name)).alias(f"key{index}") for index, name in enumerate(sides.key)]
    hashes = [sides.hash_of([name]).alias(alias) for alias, name in names.items()]
    rows = sides.select([*keys, sides.hash_of(sides.columns).alias("hash"), *hashes], buckets)
    by_key = rows.groupBy(*(f"key{index}" for index in range(len(keys)))).agg(*_sums(), *map(_is_changed, names))
    differs = (sf.col("source_rows") != sf.col("lake_rows")) | (sf.col("high") != 0) | (sf.col("low") != 0)
    found = by_key.where(differs).withColumn("difference", _difference()).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        counts = {Difference(row[0]): int(row[1]) for row in found.groupBy("difference").count().collect()}
        first = found.orderBy(*(f"key{index}" for index in range(len(keys)))).limit(shown_max)
        return DifferingKeys(counts, tuple(_shown(sides, first, names)))
    finally:
        found.unpersist()


def _shown(sides: Sides, first: DataFrame, names: dict[str, str]) -> Iterator[KeyDifference]:
    texts = [
        _text(sf.col(f"key{index}"), sides.source.schema[name].dataType).alias(f"key{index}")
        for index, name in enumerate(sides.key)
    ]
    for row in first.select("difference", "source_rows", "lake_rows", *texts, *names).collect():
        difference = Difference(row.difference)
        changed = [name for alias, name in names.items() if row[alias]] if difference is Difference.CHANGED else []
        key = {name: row[f"key{index}"] for index, name in enumerate(sides.key)}
        yield KeyDifference(key, difference, row.source_rows, row.lake_rows, tuple(changed))


def _parts(name: str, type_: DataType) -> list[Column]:
    """What a hash must be of, so that it tells this column's values apart: Spark's own passes over nulls, and takes
    -0.0 for 0.0."""
    value = sf.col(quote(name))
    parts = [value.isNull(), value]
    if isinstance(type_, DoubleType | FloatType):
        parts.append(_is_minus_zero(value))
    if isinstance(type_, ArrayType):
        parts += [sf.size(value), sf.transform(value, lambda each: each.isNull())]
        if isinstance(type_.elementType, DoubleType | FloatType):
            parts.append(sf.transform(value, lambda each: sf.coalesce(_is_minus_zero(each), sf.lit(False))))
    return parts


def _is_minus_zero(value: Column) -> Column:
    return (value == 0) & value.cast("string").startswith("-")


def _sums() -> list[Column]:
    """Rows of each side, and the source's hashes minus the lake's. Two halves, because one sum might overflow; a
    difference has to cancel out in both to be missed."""
    in_source, hash_ = sf.col("in_source"), sf.col("hash")
    halves = {"high": sf.shiftright(hash_, 32), "low": hash_.bitwiseAND(sf.lit(_LOW_BITS))}
    return [
        sf.count_if(in_source).alias("source_rows"),
        sf.count_if(~in_source).alias("lake_rows"),
        *(sf.sum(sf.when(in_source, half).otherwise(-half)).alias(name) for name, half in halves.items()),
    ]


def _is_changed(alias: str) -> Column:
    """Whether the sides' values of a column differ; exact for a key with one row on each side."""
    one, other = (sf.max(sf.when(side, sf.col(alias))) for side in (sf.col("in_source"), ~sf.col("in_source")))
    return (~one.eqNullSafe(other)).alias(alias)


def _difference() -> Column:
    source_rows, lake_rows = sf.col("source_rows"), sf.col("lake_rows")
    return (
        sf.when(source_rows > lake_rows, Difference.MISSING.value)
        .when(source_rows < lake_rows, Difference.EXTRA.value)
        .otherwise(Difference.CHANGED.value)
    )


def _text(value: Column, type_: DataType) -> Column:
    return sf.concat(sf.lit("\\x"), sf.lower(sf.hex(value))) if isinstance(type_, BinaryType) else value.cast("string")
