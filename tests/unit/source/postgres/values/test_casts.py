"""Postgres text to Arrow values, against Python's own parsers."""

from __future__ import annotations

import datetime
import math
import struct
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.errors import DefiniteError
from tailrace.model.rows.lake_types import arrow_type
from tailrace.source.postgres.values.casts import cast as cast_with_texts

UTC = datetime.UTC
LAKE_TYPES = ["boolean", "smallint", "int", "bigint", "float", "double", "decimal(12,2)", "string", "binary", "date"]
LAKE_TYPES += ["timestamp", "timestamp_ntz", "array<int>", "array<string>", "array<decimal(12,2)>"]


def cast(text: pa.Array, lake: str) -> pa.Array:
    """Where every value fits."""
    values, odd = cast_with_texts(text, lake)
    assert odd is None
    return values


def postgres_timestamp(value: datetime.datetime) -> str:
    """As Postgres prints it: no fraction when zero, no trailing zeros otherwise."""
    text = f"{value.year:04}-{value:%m-%d %H:%M:%S}"
    return f"{text}.{value.microsecond:06}".rstrip("0") if value.microsecond else text


@given(st.lists(st.none() | st.datetimes()))
def test_a_timestamp_keeps_every_microsecond(moments: list[datetime.datetime | None]) -> None:
    text = [moment and postgres_timestamp(moment) for moment in moments]
    assert cast(pa.array(text, pa.string()), "timestamp_ntz").to_pylist() == moments
    zoned = [moment and f"{moment}+00" for moment in text]
    expected = [moment and moment.replace(tzinfo=UTC) for moment in moments]
    assert cast(pa.array(zoned, pa.string()), "timestamp").to_pylist() == expected


@given(st.lists(st.none() | st.dates()))
def test_a_date_keeps_its_day(days: list[datetime.date | None]) -> None:
    assert cast(pa.array([day and day.isoformat() for day in days], pa.string()), "date").to_pylist() == days


@given(st.lists(st.none() | st.binary(max_size=40)), st.integers(0, 5), st.booleans())
def test_bytea_comes_back_byte_for_byte_also_from_a_slice(
    blobs: list[bytes | None], start: int, as_binary: bool
) -> None:
    text = pa.array([None if blob is None else rf"\x{blob.hex()}" for blob in blobs], pa.string())
    text = (text.cast(pa.binary()) if as_binary else text).slice(start)
    result = cast(text, "binary")
    result.validate(full=True)
    assert result.to_pylist() == blobs[start:]


@given(st.lists(st.none() | st.decimals(min_value=-(10**10) + 1, max_value=10**10 - 1, places=2)))
def test_a_decimal_is_exact(numbers: list[Decimal | None]) -> None:
    text = [None if number is None else f"{number:f}" for number in numbers]
    assert cast(pa.array(text, pa.string()), "decimal(12,2)").to_pylist() == numbers


@given(st.lists(st.floats(width=32)))
def test_a_float_keeps_its_bits(numbers: list[float]) -> None:
    text = [postgres_float(number) for number in numbers]
    for lake, layout in (("float", "f"), ("double", "d")):
        found = cast(pa.array(text, pa.string()), lake).to_pylist()
        assert [bits(layout, number) for number in found] == [bits(layout, number) for number in numbers]


def postgres_float(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return f"{'-' if number < 0 else ''}Infinity" if math.isinf(number) else repr(number)


def bits(layout: str, number: float) -> bytes:
    return b"nan" if math.isnan(number) else struct.pack(layout, number)


def test_a_boolean_is_t_or_f() -> None:
    assert cast(pa.array([b"t", None, b"f"]), "boolean").to_pylist() == [True, None, False]
    with pytest.raises(DefiniteError, match="'true'"):
        cast(pa.array(["t", "true"]), "boolean")


@pytest.mark.parametrize(
    ("lake", "value"),
    [
        ("timestamp", "infinity"),
        ("timestamp", "-infinity"),
        ("timestamp", "10000-01-01 00:00:00+00"),
        ("timestamp", "0044-03-15 12:00:00+00 BC"),
        ("timestamp", "0044-03-15 12:00:00.5+00 BC"),
        ("timestamp_ntz", "infinity"),
        ("timestamp_ntz", "294276-12-31 23:59:59.999999"),
        ("timestamp_ntz", "0002-11-30 00:00:00 BC"),
        ("date", "infinity"),
        ("date", "10000-01-01"),
        ("date", "5874897-12-31"),
        ("date", "0002-11-30 BC"),
        ("decimal(12,2)", "NaN"),
        ("decimal(12,2)", "Infinity"),
        ("decimal(3,1)", "100.0"),
    ],
)
def test_a_value_that_its_lake_type_cannot_hold_is_null_and_its_text_is_kept(lake: str, value: str) -> None:
    fits = {"date": "2024-01-01", "timestamp_ntz": "2024-01-01 00:00:00", "timestamp": "2024-01-01 00:00:00+00"}
    good = fits.get(lake, "1.5")
    for text in (pa.array([None, value, good]), pa.array([None, value.encode(), good.encode()])):
        values, odd = cast_with_texts(text, lake)
        assert odd is not None
        assert odd.to_pylist() == [None, value, None]
        assert values.is_valid().to_pylist() == [False, False, True]
        assert values[2] == cast(pa.array([good]), lake)[0]


@pytest.mark.parametrize(
    ("lake", "value"),
    [("int", "2147483648x"), ("date", "today"), ("timestamp", "2024-01-01 00:00:00"), ("decimal(12,2)", "1,5")],
)
def test_text_that_no_value_of_the_type_has_is_refused_by_name(lake: str, value: str) -> None:
    for text in (pa.array([None, value]), pa.array([None, value.encode()])):
        with pytest.raises(DefiniteError) as caught:
            cast(text, lake)
        assert f"'{value}'" in caught.value.message


@pytest.mark.parametrize(("lake", "value"), [("smallint", "32768"), ("int", "-2147483649"), ("binary", r"\x0")])
def test_a_value_out_of_range_is_refused(lake: str, value: str) -> None:
    with pytest.raises(DefiniteError):
        cast(pa.array([value]), lake)


@pytest.mark.parametrize("value", ["x00", r"\xzz", r"\y00", ""])
def test_bytea_that_is_not_hex_is_refused(value: str) -> None:
    with pytest.raises(DefiniteError, match="hex"):
        cast(pa.array([r"\x00", value]), "binary")


def test_text_that_is_not_utf8_is_refused() -> None:
    for lake in ("string", "date"):
        with pytest.raises(DefiniteError):
            cast(pa.array([b"\xff"]), lake)


@pytest.mark.parametrize("lake", LAKE_TYPES)
def test_no_rows_and_only_nulls_have_the_type_too(lake: str) -> None:
    for text in (pa.array([], pa.binary()), pa.array([None, None], pa.string())):
        result = cast(text, lake)
        assert result.type == arrow_type(lake)
        assert result.null_count == len(text)
