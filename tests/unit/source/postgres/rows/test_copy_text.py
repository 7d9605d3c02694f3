"""Postgres's text format, written here byte by byte and read as columns."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tailrace.errors import DefiniteError
from tailrace.model.rows.exact import EXACT, padded
from tailrace.model.rows.lake_types import arrow_type
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.source.postgres.rows.copy_kernel import ROWS_MAX, SLACK
from tailrace.source.postgres.rows.copy_out import Portion
from tailrace.source.postgres.rows.copy_text import BLOCK_BYTES, TEXTS_BYTES_MAX, RowReader
from tailrace.source.postgres.values import casts

ESCAPES = {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
TEXT = st.text(st.sampled_from("\\\\\\bfnrtvN\b\f\n\r\t\vxé\"', \x01\x1f\x7f"), max_size=20) | st.none()
DIGITS = st.integers(0, 22).flatmap(lambda count: st.text("0123456789", min_size=count, max_size=count))
NUMBER = st.builds("{}{}{}{}".format, st.sampled_from(["", "-"]), DIGITS, st.sampled_from(["", ".", ".", "+"]), DIGITS)
INTEGER = st.integers(-(2**15), 2**15 - 1).map(str) | st.integers(-(2**63), 2**63 - 1).map(str)
MONEY = st.decimals(-(10**16), 10**16, places=2).map(str)
DATE = st.dates().map(str)
TIME = st.datetimes().map(str)
ODD_NUMBERS = (
    *("", "-", ".", "0", "-0", " 1", "1 ", "1.5", "1e5", "NaN", "Infinity", "1/3", "12:4", "é", "0.1234567"),
    *("32767", "32768", "-32768", "-32769", "2147483647", "2147483648", "-2147483648", "-2147483649"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "9" * 19),
    *("18446744073709551615", "18446744073709551616", "18446744073709551617", "1" * 22, "1" * 38, "0" * 30 + "1"),
    *("999999999999999.99", "9999999999999.99", "10000000000000.00", "10000000000000000.00", "99999", "100000"),
)
ODD_TIMES = (
    *("t", "f", "true", "infinity", "-infinity", "0000-01-01", "1999-00-10", "1999-02-29", "2000-02-29", "1900-02-29"),
    *("2023-13-01", "2023-04-31", "2023-1-1", "12023-01-01", "0044-03-15 BC", "2023-01-01T00:00:00"),
    *(f"2023-01-01 {time}" for time in ("24:00:00", "23:59:60", "00:00:00.", "00:00:00.1234567", "23:59:59.999999")),
    *(f"2023-01-01 {time}" for time in ("00:00:00.5+00", "00:00:00+00", "00:00:00-07", "00:00:00.000001+00")),
)
VALUE = INTEGER | NUMBER | MONEY | DATE | TIME | TIME.map("{}+00".format) | st.sampled_from(ODD_NUMBERS + ODD_TIMES)
LAKE = (
    *("smallint", "int", "bigint", "boolean", "date", "timestamp", "timestamp_ntz", "double", "string", "binary"),
    *("decimal(15,2)", "decimal(18,0)", "decimal(18,18)", "decimal(38,10)", "decimal(38,20)", "decimal(5,0)"),
    "array<int>",
)


def table(lake: Sequence[str]) -> TableSchema:
    columns = tuple(Column(f"c{number}", type_, type_) for number, type_ in enumerate(lake))
    return TableSchema(TableId("public", "t"), 1, columns, ())


def sent(text: str | None) -> str:
    """As the server writes it."""
    return r"\N" if text is None else "".join(ESCAPES.get(letter, letter) for letter in text)


def portion_of(rows: Sequence[Sequence[str | None]], around: bytes = b"7\t\n\\8.-:d") -> Portion:
    """With bytes on both sides that would be values."""
    slack = (around * SLACK)[:SLACK]
    lines = ["\t".join(map(sent, row)).encode() + b"\n" for row in rows]
    messages = b"".join(b"d" + struct.pack(">i", len(line) + 4) + line for line in lines)
    return Portion(bytearray(slack + messages + slack), SLACK, SLACK + len(messages))


def read(schema: TableSchema, portion: Portion, block_bytes: int = BLOCK_BYTES) -> pa.Table:
    found = pa.Table.from_batches(map(padded, RowReader(schema, block_bytes).read(portion)))
    found.validate(full=True)
    return found


def rows_of(found: pa.Table) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in found.drop([EXACT]).to_pylist()]


@given(st.lists(st.tuples(st.integers(-9, 9).map(str), TEXT, TEXT), min_size=1, max_size=9), st.integers(8, 99))
@example([("1", "\\", "\\"), ("2", "\\N", None), ("3", "", "\\\n")], 16)
@example([("1", "aN", "\\")], 16)
def test_every_text_is_read_as_it_was_before_the_server_escaped_it(
    rows: list[tuple[str, str | None, str | None]], block_bytes: int
) -> None:
    found = read(table(["int", "string", "string"]), portion_of(rows), block_bytes)
    assert rows_of(found) == [(int(number), a, b) for number, a, b in rows]


@given(st.sampled_from(LAKE), st.lists(VALUE | st.none(), min_size=1, max_size=6), st.booleans())
@example("decimal(15,2)", ["1.00", "NaN", "2.00", "12345678901234.5", None], True)
@example("bigint", ["9223372036854775807", None, "-9223372036854775808"], False)
def test_values_are_what_the_casts_make_of_their_texts(lake: str, texts: list[str | None], is_last: bool) -> None:
    assert_as_the_casts(lake, texts, is_last)


@pytest.mark.parametrize("lake", LAKE)
def test_a_text_of_an_odd_form_is_what_the_casts_make_of_it(lake: str) -> None:
    for text in ODD_NUMBERS + ODD_TIMES:
        for is_last in (False, True):
            assert_as_the_casts(lake, [text], is_last)


def assert_as_the_casts(lake: str, texts: list[str | None], is_last: bool) -> None:
    """Or refused like there. In the last column, another byte ends a value."""
    rows = [["x", text] if is_last else [text, "x"] for text in texts]
    schema = table(["string", lake] if is_last else [lake, "string"])
    try:
        expected, odd = casts.cast(pa.array([text and text.encode() for text in texts], pa.binary()), lake)
    except DefiniteError:
        with pytest.raises(DefiniteError, match=rf"public\.t column c{int(is_last)}: "):
            read(schema, portion_of(rows))
        return
    found = read(schema, portion_of(rows))
    values = found.column(int(is_last)).combine_chunks()
    # As shown: NaN does not equal itself.
    assert (values.type, values.to_string()) == (arrow_type(lake), expected.to_string())
    kept = [None] * len(texts) if odd is None else odd.to_pylist()
    assert [dict(each or ()).get(f"c{int(is_last)}") for each in found.column(EXACT).to_pylist()] == kept


def test_a_text_that_is_not_utf_8_is_an_error() -> None:
    """A database without an encoding sends whatever it has."""
    portion = portion_of([("1", "long enough for a word"), ("2", "?" * 20)])
    portion.buffer[portion.buffer.index(b"?") + 11] = 0xFF
    with pytest.raises(DefiniteError, match=r"public\.t column c1: a value is not valid UTF-8"):
        read(table(["int", "string"]), portion)


def test_more_rows_than_a_block_has_room_for_are_all_read() -> None:
    """The first value of another form is in the second block."""
    count = 2 * ROWS_MAX + 5
    texts = [None if number % 7 == 3 else f"{number}.25" for number in range(count)]
    texts[ROWS_MAX + 100] = "NaN"
    rows = [(str(number), text, text) for number, text in enumerate(texts)]
    found = read(table(["int", "decimal(15,2)", "string"]), portion_of(rows))
    assert found.column("c0").to_pylist() == list(range(count))
    assert found.column("c2").to_pylist() == texts
    numbers = [None if each is None else str(each) for each in found.column("c1").to_pylist()]
    assert numbers == [None if text == "NaN" else text for text in texts]


def test_a_row_that_is_larger_than_a_block_is_read_alone() -> None:
    long = "\\é" * (BLOCK_BYTES // 2)
    rows = [("1", "a", None), ("2", long, long), ("3", None, "b")]
    found = read(table(["int", "string", "string"]), portion_of(rows))
    assert rows_of(found) == [(1, "a", None), (2, long, long), (3, None, "b")]


def test_a_table_with_many_texts_is_read_in_small_blocks() -> None:
    schema = table(["int"] + ["string"] * 1500)
    rows = [(str(number), *[None] * 700, "a" * number, *[None] * 799) for number in range(200)]
    found = read(schema, portion_of(rows))
    assert [row[701] for row in rows_of(found)] == ["a" * number for number in range(200)]
    assert found.column("c0").num_chunks > 1
    assert RowReader(schema)._out[0].nbytes < 2 * TEXTS_BYTES_MAX


def test_rows_without_columns_are_counted() -> None:
    assert read(table([]), portion_of([[], [], []])).num_rows == 3


@pytest.mark.parametrize("lake", [["int"], ["string"], ["string", "int", "string"], ["int", "date"], []])
@pytest.mark.parametrize("row", [["1"], ["1", "2"], ["1", "2", "3"], ["a"], ["1", "2", "3", "4"]])
def test_a_row_with_other_columns_is_an_error(lake: list[str], row: list[str]) -> None:
    if len(row) == len(lake):
        return
    with pytest.raises(DefiniteError, match=r"public\.t.* does not have the table's columns"):
        read(table(lake), portion_of([row]))
