"""The type of a column, written as in a table's definition, and how its values lie in a row of the binlog.

    int unsigned   decimal(12,2)   varchar(20) character set latin1   enum('a','it''s')   datetime(6)

Everything that reading a value takes is in that text, and a shape keeps it as the column's `source_type`. So a shape
that is in the log decodes its records without a server. A character set that is not named is utf8mb4.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from tailrace.source.mysql.values.charsets import BINARY, charset_named

DEFAULT_CHARSET = "utf8mb4"
INTEGERS = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}
"""Bytes of each."""
TEXTS = {"tinytext": 1, "text": 2, "mediumtext": 3, "longtext": 4}
"""Bytes of the length before each."""
BLOBS = {"tinyblob": 1, "blob": 2, "mediumblob": 3, "longblob": 4}
GEOMETRIES = (
    *("geometry", "point", "linestring", "polygon"),
    *("multipoint", "multilinestring", "multipolygon", "geometrycollection"),
)
"""In the order of their numbers."""
_LONG = 4
_FIXED_BYTES = {"float": 4, "double": 8, "date": 3, "year": 1}
_TEMPORAL_BYTES = {"time": 3, "datetime": 5, "timestamp": 4}
_DIGITS_BYTES = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_DECIMAL_GROUP = 9
_PRECISION_MAX = 38
_SHORT_MAX = 255
"""A length up to this takes one byte."""
_LAKE_TYPES = {
    **dict.fromkeys(("json", *TEXTS, "char", "varchar", "time", "enum", "set"), "string"),
    **dict.fromkeys(("binary", "varbinary", *BLOBS, *GEOMETRIES), "binary"),
    "float": "float",
    "double": "double",
    "date": "date",
    "datetime": "timestamp_ntz",
    "timestamp": "timestamp",
    "year": "smallint",
    "vector": "array<float>",
}
_SIGNED = {"tinyint": "smallint", "smallint": "smallint", "mediumint": "int", "int": "int", "bigint": "bigint"}
_UNSIGNED = {"tinyint": "smallint", "smallint": "int", "mediumint": "int", "int": "bigint", "bigint": "decimal(20,0)"}
_LABEL = r"'(?:[^']|'')*'"
_FORM = re.compile(
    rf"(?P<name>[a-z]+)(?:\((?:(?P<size>\d+)(?:,(?P<scale>\d+))?|(?P<labels>{_LABEL}(?:,{_LABEL})*))\))?"
    r"(?P<unsigned> unsigned)?(?: character set (?P<charset>\w+))?"
)
_SIZED = ("decimal", "bit", "char", "varchar", "binary", "varbinary", "vector")
_HAS_CHARSET = ("char", "varchar", *TEXTS)
_HAS_SIGN = (*INTEGERS, "float", "double", "decimal")


@dataclass(frozen=True)
class ColumnType:
    """A type with everything that its values depend on."""

    name: str
    size: int = 0
    """Characters or bytes at most, digits, bits; of a time, the digits of its fraction."""
    scale: int = 0
    is_unsigned: bool = False
    charset: str = ""
    """Of a type of text."""
    labels: tuple[str, ...] = ()
    """Of an enum or a set."""

    def __str__(self) -> str:
        text = self.name
        if self.labels:
            text += "(" + ",".join("'" + label.replace("'", "''") + "'" for label in self.labels) + ")"
        elif self.name == "decimal":
            text += f"({self.size},{self.scale})"
        elif self.size or self.name in _SIZED:
            text += f"({self.size})"
        unsigned = " unsigned" if self.is_unsigned else ""
        charset = f" character set {self.charset}" if self.charset not in ("", DEFAULT_CHARSET) else ""
        return text + unsigned + charset

    @classmethod
    def parse(cls, text: str) -> ColumnType:
        """What `str` wrote. ValueError for anything else."""
        return _parse(text)

    @property
    def width(self) -> int:
        """The bytes that a value takes; or, negative, those of the length before it."""
        if self.name in INTEGERS:
            return INTEGERS[self.name]
        if self.name in _TEMPORAL_BYTES:
            return _TEMPORAL_BYTES[self.name] + (self.size + 1) // 2
        if self.name in ("char", "varchar", "binary", "varbinary"):
            return -1 if self.bytes_max <= _SHORT_MAX else -2
        return _other_width(self)

    @property
    def bytes_max(self) -> int:
        """Of a value of a type whose size counts characters or bytes."""
        return self.size * (charset_named(self.charset).bytes_max if self.charset else 1)

    @property
    def lake_type(self) -> str:
        """The lake type that holds its values exactly, but for those that are text then (`model.rows.exact`)."""
        if self.name in INTEGERS:
            return (_UNSIGNED if self.is_unsigned else _SIGNED)[self.name]
        if self.name == "decimal":
            return f"decimal({self.size},{self.scale})" if self.size <= _PRECISION_MAX else "string"
        if self.name == "bit":
            return "boolean" if self.size == 1 else "bigint" if self.size < 64 else "decimal(20,0)"
        return _LAKE_TYPES[self.name]


def decimal_bytes(digits: int) -> int:
    """What so many digits before or after the point take."""
    return digits // _DECIMAL_GROUP * 4 + _DIGITS_BYTES[digits % _DECIMAL_GROUP]


def _other_width(type_: ColumnType) -> int:
    match type_.name:
        case "float" | "double" | "date" | "year":
            return _FIXED_BYTES[type_.name]
        case "decimal":
            return decimal_bytes(type_.size - type_.scale) + decimal_bytes(type_.scale)
        case "bit":
            return (type_.size + 7) // 8
        case "enum":
            return 1 if len(type_.labels) <= _SHORT_MAX else 2
        case "set":
            # Five to seven bytes are eight.
            bytes_ = (len(type_.labels) + 7) // 8
            return bytes_ if bytes_ <= 4 else 8
    return -(TEXTS | BLOBS).get(type_.name, _LONG)


@lru_cache(1 << 14)
def _parse(text: str) -> ColumnType:
    found = _FORM.fullmatch(text)
    name = found["name"] if found is not None else ""
    if found is None or (name not in _LAKE_TYPES and name not in (*INTEGERS, "decimal", "bit")):
        raise ValueError(f"{text!r} is no type of MySQL that is known here")
    charset = (found["charset"] or DEFAULT_CHARSET) if name in _HAS_CHARSET else ""
    if (found["charset"] and not charset) or (found["unsigned"] and name not in _HAS_SIGN) or charset == BINARY:
        raise ValueError(f"{text!r} is no type of MySQL")
    labels = _labels(found["labels"]) if found["labels"] else ()
    return ColumnType(
        name, int(found["size"] or 0), int(found["scale"] or 0), bool(found["unsigned"]), charset, tuple(labels)
    )


def _labels(text: str) -> Sequence[str]:
    return [each[1:-1].replace("''", "'") for each in re.findall(_LABEL, text)]
