"""Which lake type holds the values of a Postgres type.

A lake type holds the values of its Postgres type exactly, and the text of one that it cannot hold is kept beside it
(see `casts`). A Postgres type without such a lake type becomes `string`: Postgres's own text.

A table keeps the types that it was copied with. So the rule has a number, which the definition of a copy remembers:
when it changes, old copies stay as they are until they are made again.
"""

from __future__ import annotations

from dataclasses import dataclass

_NUMERIC = 1700
_TYPMOD_HEADER = 4
_PRECISION_MAX = 38

# By oid, because any user may create another type called `date`. Oids of built-in types never change.
_LAKE_TYPES = {
    16: "boolean",
    17: "binary",
    20: "bigint",
    21: "smallint",
    23: "int",
    26: "bigint",  # oid: unsigned, 32 bits
    700: "float",
    701: "double",
    1082: "date",
    1114: "timestamp_ntz",
    1184: "timestamp",
}


RULE_TEXT_ARRAYS = 1
"""Every array was text."""
RULE = 2
"""Arrays have the lake type of their elements."""


@dataclass(frozen=True)
class TypeInfo:
    """A row of pg_type. A domain knows the type it is made of and that type's modifier."""

    oid: int
    name: str
    base: TypeInfo | None = None
    base_typmod: int = -1
    element: TypeInfo | None = None
    """Of an array whose text has commas between the elements. They have the array's modifier."""


def lake_type(type_: TypeInfo, typmod: int, *, arrays: bool = True) -> str:
    """The lake type of a column declared with this type and modifier (`atttypmod`). Without `arrays`, one of those is
    text."""
    while type_.base is not None:
        type_, typmod = type_.base, type_.base_typmod
    if type_.element is not None and arrays:
        return f"array<{lake_type(type_.element, typmod, arrays=False)}>"
    if type_.oid == _NUMERIC:
        return _numeric(typmod)
    return _LAKE_TYPES.get(type_.oid, "string")


def is_numeric(type_: TypeInfo) -> bool:
    """Whether it is `numeric`, or a domain over it."""
    while type_.base is not None:
        type_ = type_.base
    return type_.oid == _NUMERIC


def _numeric(typmod: int) -> str:
    if typmod < _TYPMOD_HEADER:
        return "string"
    packed = typmod - _TYPMOD_HEADER
    precision = packed >> 16 & 0xFFFF
    scale = (packed & 0x7FF ^ 0x400) - 0x400  # eleven bits, signed since PG15
    if precision <= _PRECISION_MAX and 0 <= scale <= precision:
        return f"decimal({precision},{scale})"
    return "string"
