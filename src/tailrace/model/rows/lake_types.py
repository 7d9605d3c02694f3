"""Lake types: the types of a lake table's columns, in Spark SQL's words, and the Arrow types that carry them."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import pyarrow as pa

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_ARRAY = re.compile(r"array<(.+)>")

_ARROW_TYPES = {
    "boolean": pa.bool_(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
}
_LIMITED = ("decimal", "date", "timestamp", "timestamp_ntz", "array")


@cache
def arrow_type(lake: str) -> Any:
    """The Arrow type that carries a lake type. KeyError for what is none."""
    decimal = _DECIMAL.fullmatch(lake)
    if decimal is not None:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    element = element_type(lake)
    return _ARROW_TYPES[lake] if element is None else pa.list_(arrow_type(element))


def is_known(lake: str) -> bool:
    """Whether it is one of our lake types, and no array."""
    return lake in _ARROW_TYPES or _DECIMAL.fullmatch(lake) is not None


@cache
def element_type(lake: str) -> str | None:
    """The lake type of an array's elements; None for any other type."""
    array = _ARRAY.fullmatch(lake)
    return array[1] if array is not None else None


@cache
def is_limited(lake: str) -> bool:
    """Whether a source's type of this lake type may have values that the lake type cannot hold (`model.rows.exact`)."""
    return re.split("[(<]", lake, maxsplit=1)[0] in _LIMITED
