"""Postgres's text format, written here byte by byte and read as columns."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tailrace.model.table import Column, TableId, TableSchema
from tailrace.source.postgres import _copy_text
from tailrace.source.postgres._copy_out import Portion
from tailrace.source.postgres._copy_text import parsed, unescaped

ESCAPES = {"\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
TEXT = st.text(st.sampled_from("\\\\\\bfnrtvN\b\f\n\r\t\vxé\"', \x01\x1f\x7f"), max_size=8) | st.none()
SCHEMA = TableSchema(
    TableId("public", "t"),
    1,
    (Column("id", "int", "integer"), Column("a", "string", "text"), Column("b", "string", "text")),
    ("id",),
)


def sent(text: str | None) -> str:
    """As the server writes it."""
    return r"\N" if text is None else "".join(ESCAPES.get(letter, letter) for letter in text)


def portion_of(rows: list[tuple[int, str | None, str | None]]) -> Portion:
    lines = [f"    \t{number}\t{sent(a)}\t{sent(b)}\n".encode() for number, a, b in rows]
    return Portion(memoryview(b"".join(lines)), len(lines), max(map(len, lines)))


@given(st.lists(st.tuples(st.integers(-9, 9), TEXT, TEXT), min_size=1, max_size=9), st.integers(8, 99))
@example([(1, "\\", "\\"), (2, "\\N", None), (3, "", "\\\n")], 16)
def test_every_text_is_read_as_it_was_before_the_server_escaped_it(
    rows: list[tuple[int, str | None, str | None]], block_bytes: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_copy_text, "BLOCK_BYTES", block_bytes)
        found = pa.Table.from_batches(list(parsed(portion_of(rows), SCHEMA)))
    found.validate(full=True)
    assert [tuple(row.values()) for row in found.to_pylist()] == rows


@given(st.lists(TEXT, max_size=9), st.integers(0, 9), st.sampled_from([pa.string(), pa.binary()]))
def test_a_slice_of_texts_is_unescaped_like_the_whole(texts: list[str | None], first: int, type_: pa.DataType) -> None:
    escaped = [None if text is None else sent(text).encode() for text in texts]
    found = unescaped(pa.array(escaped, pa.binary()).cast(type_).slice(first))
    found.validate(full=True)
    assert found.cast(pa.binary()).to_pylist() == [text if text is None else text.encode() for text in texts][first:]
