"""Postgres's text of arrays, against a reader that goes from letter to letter."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.errors import DefiniteError
from tailrace.source.postgres.values.casts import cast

LETTERS = st.text(st.sampled_from('ab,"\\{}[]N UL=\n\tä0'), max_size=6)


def written(elements: list[str | None]) -> str:
    """As Postgres prints an array of text."""
    return "{" + ",".join("NULL" if each is None else quoted(each) for each in elements) + "}"


def quoted(text: str) -> str:
    needs_quotes = text == "" or text.upper() == "NULL" or re.search(r'[{}",\\\s]', text)
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if needs_quotes else text


@given(st.lists(st.none() | st.lists(st.none() | LETTERS, max_size=4), max_size=6), st.integers(0, 2))
def test_arrays_of_text_come_back_element_by_element(arrays: list[list[str | None] | None], start: int) -> None:
    text = pa.array([None if each is None else written(each).encode() for each in arrays], pa.binary()).slice(start)
    values, odd = cast(text, "array<string>")
    values.validate(full=True)
    assert odd is None
    assert values.to_pylist() == arrays[start:]


@given(st.lists(st.none() | st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), max_size=5), max_size=6))
def test_arrays_of_numbers_come_back_with_their_nulls(arrays: list[list[int | None] | None]) -> None:
    text = [each if each is None else written([None if n is None else str(n) for n in each]) for each in arrays]
    values, odd = cast(pa.array(text, pa.string()), "array<int>")
    assert odd is None
    assert values.to_pylist() == arrays


ODD = ["{{1,2},{3,4}}", "[0:1]={1,2}", "[-2:-1][1:1]={{1},{2}}", "{{{5}}}"]


@given(st.lists(st.sampled_from([*ODD, "{}", "{1,NULL}", None]), max_size=8))
def test_an_array_of_several_dimensions_or_other_bounds_is_kept_as_text(texts: list[str | None]) -> None:
    values, odd = cast(pa.array(texts, pa.string()), "array<int>")
    flat: dict[str | None, list[int | None]] = {"{}": [], "{1,NULL}": [1, None]}
    assert values.to_pylist() == [flat.get(text) for text in texts]
    assert (odd.to_pylist() if odd else [None] * len(texts)) == [text if text in ODD else None for text in texts]


def test_braces_inside_quotes_are_no_dimension() -> None:
    values, odd = cast(pa.array(['{"{1,2}","[0:1]={3}"}', '{"}"}']), "array<string>")
    assert odd is None
    assert values.to_pylist() == [["{1,2}", "[0:1]={3}"], ["}"]]


def test_one_element_that_does_not_fit_keeps_its_whole_array_as_text() -> None:
    texts = ["{2024-01-01,NULL}", "{2024-01-01,infinity}", None, "{}", '{"0044-03-15 BC"}', "{2024-01-02}"]
    values, odd = cast(pa.array(texts), "array<date>")
    values.validate(full=True)
    assert odd is not None
    assert odd.to_pylist() == [None, texts[1], None, None, texts[4], None]
    assert [each if each is None else [str(day) for day in each] for each in values.to_pylist()] == [
        ["2024-01-01", "None"],
        None,
        None,
        [],
        None,
        ["2024-01-02"],
    ]


@pytest.mark.parametrize("text", ["1,2", "{1", "1}", "", '{"a}', "{a,b"])
def test_text_that_is_no_array_is_refused(text: str) -> None:
    with pytest.raises(DefiniteError):
        cast(pa.array(["{1}", text or "x"]), "array<int>")


def test_bytes_in_an_array_are_decoded() -> None:
    values, odd = cast(pa.array([r'{"\\x00ff",NULL,"\\x"}']), "array<binary>")
    assert odd is None
    assert values.to_pylist() == [[b"\x00\xff", None, b""]]
