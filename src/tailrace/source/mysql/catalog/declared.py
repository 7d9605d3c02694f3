"""A column's type as the catalog has it, read as the binlog will tell it.

The catalog shows the present, a table map the moment of its rows. For a table that has not changed both give the same
type, or both refuse it.
"""

from __future__ import annotations

import re

from tailrace.source.mysql.events.table_map import UnknownType
from tailrace.source.mysql.values.charsets import BINARY, charset_named
from tailrace.source.mysql.values.column_type import GEOMETRIES, INTEGERS, TEXTS, ColumnType

_LABEL = re.compile(r"'((?:[^'\\]|''|\\.)*)'")
_SIZES = re.compile(r"\((\d+)(?:,(\d+))?\)")
_ESCAPES = {"\\\\": "\\", "\\0": "\0", "\\n": "\n", "\\r": "\r", "''": "'"}
_ESCAPED = re.compile(r"\\\\|\\0|\\n|\\r|''")
_UNSIZED = (*INTEGERS, "float", "double", "year", "json", "date", *TEXTS)
_OTHER_NAMES = {"geomcollection": "geometrycollection", "utf8": "utf8mb3"}
_FORMERLY = "mariadb-5.3"


def declared_type(name: str, declared: str, charset: str | None) -> ColumnType | UnknownType:
    """Of a column that the catalog calls of this type, with its whole declaration."""
    name = _OTHER_NAMES.get(name.lower(), name.lower())
    lower = declared.lower()
    if "compressed" in lower:
        return UnknownType("compressed columns are not read yet")
    if _FORMERLY in lower:
        return UnknownType(f"it is a {name} of an old format; alter table … force renews it")
    charset = _OTHER_NAMES.get(charset or "", charset or "")
    if charset not in ("", BINARY) and not _is_read(charset):
        what = "labels" if name in ("enum", "set") else "text"
        return UnknownType(f"{what} in {charset} {'is' if what == 'text' else 'are'} not read yet; {_CONVERT}")
    if name in ("enum", "set"):
        return ColumnType(name, labels=tuple(_unescaped(label) for label in _LABEL.findall(declared)))
    found = _SIZES.search(declared)
    size, scale = (int(found[1]), int(found[2] or 0)) if found and name not in _UNSIZED else (0, 0)
    is_text = name in ("char", "varchar", *TEXTS)
    type_ = ColumnType(name, size, scale, " unsigned" in lower, charset if is_text else "")
    try:
        return ColumnType.parse(str(type_)) if name not in GEOMETRIES else type_
    except ValueError:
        return UnknownType(f"the type {declared} is not known here")


_CONVERT = "convert the column to utf8mb4"


def _is_read(charset: str) -> bool:
    try:
        return charset_named(charset).is_known
    except KeyError:
        return False


def _unescaped(label: str) -> str:
    return _ESCAPED.sub(lambda found: _ESCAPES[found[0]], label)
