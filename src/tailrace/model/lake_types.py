"""Lake types: the types of a lake table's columns, in Spark SQL's words, and the Arrow types that carry them."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")

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
}


def arrow_type(lake: str) -> Any:
    """The Arrow type that carries a lake type."""
    decimal = _DECIMAL.fullmatch(lake)
    if decimal is not None:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return _ARROW_TYPES[lake]
