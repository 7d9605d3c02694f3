"""The table of types in docs/types.md, made from the rule itself:
`python -m scripts.type_table`.

A test fails where the document has another table, and another one where the server has a type that is not in it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.source.postgres.values.types import TypeInfo, lake_type

_NUMERIC = TypeInfo(1700, "numeric")
_TYPMOD_12_2 = (12 << 16 | 2) + 4


@dataclass(frozen=True)
class TypeFamily:
    """Types that are copied alike, as Postgres writes them."""

    names: tuple[str, ...]
    type: TypeInfo
    note: str = ""
    typmod: int = -1

    @property
    def row(self) -> str:
        lake = lake_type(self.type, self.typmod)
        lake = "decimal(p,s)" if lake == "decimal(12,2)" else lake
        return f"| {', '.join(f'`{name}`' for name in self.names)} | `{lake}` | {self.note} |".replace("|  |", "| |")


def _text(*names: str, note: str = "") -> TypeFamily:
    return TypeFamily(names, TypeInfo(0, names[0]), note)


_BEYOND = "`infinity`, BC and years after 9999 [in `_exact`](#values-that-a-column-cannot-hold)"

FAMILIES = (
    TypeFamily(("boolean",), TypeInfo(16, "bool")),
    TypeFamily(("smallint",), TypeInfo(21, "int2")),
    TypeFamily(("integer",), TypeInfo(23, "int4")),
    TypeFamily(("bigint",), TypeInfo(20, "int8")),
    TypeFamily(("oid",), TypeInfo(26, "oid"), "unsigned, 32 bits"),
    TypeFamily(("real",), TypeInfo(700, "float4"), "same bits, with `NaN`, `Infinity`, `-Infinity`, `-0`"),
    TypeFamily(("double precision",), TypeInfo(701, "float8"), "same bits, as above"),
    TypeFamily(("numeric(p,s)",), _NUMERIC, "p up to 38, s from 0 to p; `NaN` in `_exact`", _TYPMOD_12_2),
    TypeFamily(("numeric",), _NUMERIC, "no precision, more than 38 digits, or a negative scale: text, see below"),
    TypeFamily(("bytea",), TypeInfo(17, "bytea")),
    TypeFamily(("date",), TypeInfo(1082, "date"), _BEYOND),
    TypeFamily(("timestamp without time zone",), TypeInfo(1114, "timestamp"), "to the microsecond; as for `date`"),
    TypeFamily(("timestamp with time zone",), TypeInfo(1184, "timestamptz"), "an instant; as for `date`"),
    TypeFamily(
        ("integer[]",),
        TypeInfo(1007, "_int4", element=TypeInfo(23, "int4")),
        "every array: the lake type of its elements, nulls among them; other forms in `_exact`",
    ),
    TypeFamily(("text[]",), TypeInfo(1009, "_text", element=TypeInfo(25, "text")), "also of types that are text here"),
    _text("text", "character varying", "character", '"char"', "name", note="`char(n)` with its padding"),
    _text("uuid", "json", "jsonb", "jsonpath", "xml", note="`json` as it was written, `jsonb` as Postgres prints it"),
    _text("time without time zone", "time with time zone", "interval", note="`24:00:00` stays"),
    _text("money", note="as `lc_monetary = C` prints it: `$1,234.50`"),
    _text("bit", "bit varying"),
    _text("inet", "cidr", "macaddr", "macaddr8"),
    _text("point", "line", "lseg", "box", "path", "polygon", "circle", note="an array of `box` is text, too"),
    _text("tsvector", "tsquery"),
    _text("int4range", "int8range", "numrange", "daterange", "tsrange", "tstzrange", note="ranges of any type"),
    _text("int4multirange", "int8multirange", "nummultirange", "datemultirange", "tsmultirange", "tstzmultirange"),
    _text("int2vector", "oidvector", note="no arrays in what they print"),
    _text("tid", "xid", "xid8", "cid", "pg_lsn", "pg_snapshot", "txid_snapshot", "refcursor", "aclitem"),
    _text(
        "regclass", "regproc", "regprocedure", "regoper", "regoperator", "regtype", note="`public.orders`, see below"
    ),
    _text("regrole", "regnamespace"),
    _text("regconfig", "regdictionary", "regcollation", "regdatabase", "gtsvector"),
    _text("an enum", "a composite type", note='labels, and `(1,"a b")`'),
    _text("hstore", "citext", "ltree", "geometry", "vector", note="every type of an extension"),
)
"""A domain is copied as the type that it is made of."""


def markdown() -> str:
    """The table."""
    return "\n".join(["| Postgres | lake | note |", "|---|---|---|", *(family.row for family in FAMILIES)])


if __name__ == "__main__":
    print(markdown())
