"""Types: their text says everything that reading their values takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.rows.lake_types import is_known
from tailrace.source.mysql.values.column_type import BLOBS, GEOMETRIES, INTEGERS, TEXTS, ColumnType

LABELS = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8), min_size=1, max_size=70, unique=True
).map(tuple)
CHARSETS = st.sampled_from(["utf8mb4", "latin1", "gbk", "utf8mb3"])
TYPES = st.one_of(
    st.builds(ColumnType, st.sampled_from([*INTEGERS, "float", "double"]), is_unsigned=st.booleans()),
    st.builds(
        lambda digits, scale, sign: ColumnType("decimal", digits, min(scale, digits), sign),
        st.integers(1, 65),
        st.integers(0, 30),
        st.booleans(),
    ),
    st.builds(ColumnType, st.just("bit"), st.integers(1, 64)),
    st.builds(ColumnType, st.sampled_from(["time", "datetime", "timestamp"]), st.integers(0, 6)),
    st.builds(ColumnType, st.sampled_from(["char", "varchar"]), st.integers(0, 255), charset=CHARSETS),
    st.builds(ColumnType, st.sampled_from(list(TEXTS)), charset=CHARSETS),
    st.builds(ColumnType, st.sampled_from(["binary", "varbinary", "vector"]), st.integers(0, 255)),
    st.builds(ColumnType, st.sampled_from([*BLOBS, *GEOMETRIES, "json", "date", "year"])),
    st.builds(ColumnType, st.sampled_from(["enum", "set"]), labels=LABELS),
)


@given(TYPES)
def test_a_type_is_read_as_it_is_written(type_: ColumnType) -> None:
    assert ColumnType.parse(str(type_)) == type_
    assert type_.width != 0 or type_.name in ("char", "varchar", "binary", "varbinary")
    assert is_known(type_.lake_type) or type_.lake_type == "array<float>"


@pytest.mark.parametrize(
    ("text", "width", "lake"),
    [
        ("int unsigned", 4, "bigint"),
        ("bigint unsigned", 8, "decimal(20,0)"),
        ("varchar(63)", -1, "string"),
        ("varchar(64)", -2, "string"),
        ("varchar(255) character set latin1", -1, "string"),
        ("char(255)", -2, "string"),
        ("decimal(38,10)", 18, "decimal(38,10)"),
        ("decimal(39,10)", 18, "string"),
        ("datetime(3)", 7, "timestamp_ntz"),
        ("timestamp", 4, "timestamp"),
        ("time(6)", 6, "string"),
        ("bit(1)", 1, "boolean"),
        ("bit(64)", 8, "decimal(20,0)"),
        ("enum('a,b','it''s')", 1, "string"),
        ("longblob", -4, "binary"),
        ("json", -4, "string"),
        ("vector(3)", -4, "array<float>"),
    ],
)
def test_a_type_says_how_its_values_lie_in_a_row(text: str, width: int, lake: str) -> None:
    type_ = ColumnType.parse(text)
    assert (str(type_), type_.width, type_.lake_type) == (text, width, lake)


@pytest.mark.parametrize(
    "text", ["", "int4", "int character set latin1", "date unsigned", "enum('a", "Int", "json(3) x"]
)
def test_what_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no type"):
        ColumnType.parse(text)
