"""Rows whose key is not among some keys, as a condition that Spark can decide while it plans.

An anti-join is a job of its own, and it scans the base even for a key that the tail has. So the keys become one value
of the plan, a hash table in two public functions:

    buckets   [[], [8, 22], [9], ...]        key k is in bucket k mod 7; a text by its CRC-32
    place     array_position(buckets[pmod(id, 7)], id)
    stays     coalesce(place, 0) = 0         also a row whose key is null: it equals none

`where id = 8` makes all of it a constant, because Spark puts the 8 for `id` into every other comparison with `=`. It
does so in nothing but comparisons, and turns `x = false` into `not x` first: hence the number. The base is not even
looked at then. For any other query, one look into a bucket costs a row what a join would.

Whole numbers and text only. Of other types, the join says when two keys are one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from zlib import crc32

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as sf

from tailrace.read.names import Dialect

KEYS_MAX = 32 << 10
TEXT_BYTES_MAX = 192 << 10
"""Spark keeps a description of the last thousand queries in memory, with the values that are in their plans."""
KEYS_A_BUCKET = 4
BUCKET_KEYS_MAX = 64
"""A row is compared with all keys of its bucket. Keys that are all multiples of one number may share a bucket."""

_TYPES = {pa.int16(): "smallint", pa.int32(): "int", pa.int64(): "bigint", pa.string(): "string"}


def is_not_among(keys: pa.Table, keys_max: int = KEYS_MAX) -> Column | None:
    """Whether a row of a frame has none of these keys, in its column of the same name. None where a join must tell:
    for keys of several columns, of other types, more than `keys_max`, or too many in one bucket."""
    if keys.num_columns != 1 or keys.num_rows > keys_max:
        return None
    type_ = _TYPES.get(keys.schema.field(0).type)
    if type_ is None:
        return None
    values = keys.column(0).drop_null().to_pylist()
    buckets = _buckets(values, _hash_of_text if type_ == "string" else int)
    text = json.dumps(buckets, separators=(",", ":"))
    if len(text) > TEXT_BYTES_MAX or max(map(len, buckets)) > BUCKET_KEYS_MAX:
        return None
    column = sf.col(Dialect.SPARK.quote(keys.column_names[0]))
    hashed = sf.crc32(column) if type_ == "string" else column
    table = sf.from_json(sf.lit(text), f"array<array<{type_}>>", {"mode": "FAILFAST"})
    bucket = sf.get(table, sf.pmod(hashed, sf.lit(len(buckets))).cast("int"))
    return sf.coalesce(sf.array_position(bucket, column), sf.lit(0)) == sf.lit(0)


def _buckets(values: list[Any], hash_of: Callable[[Any], int]) -> list[list[Any]]:
    # An odd number: keys that are all even would else share half of them.
    found: list[list[Any]] = [[] for _ in range(len(values) // KEYS_A_BUCKET | 1)]
    for value in values:
        found[hash_of(value) % len(found)].append(value)
    return found


def _hash_of_text(value: str) -> int:
    return crc32(value.encode())
