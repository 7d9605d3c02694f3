"""What a file's statistics say of its texts is never less than the truth: a reader passes over files by it."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from tailrace.lake.delta.rows.row_files import bound

LETTERS = ("a", "\x7f", "\uffff", "\U00010000", "\U0010ffff")


@st.composite
def texts(draw: st.DrawFn) -> str:
    """Around the length at which bounds are cut short."""
    begin = draw(st.sampled_from(LETTERS)) * draw(st.integers(0, 33))
    return begin + "".join(draw(st.lists(st.sampled_from(LETTERS), max_size=4)))


@given(texts())
@example("a" * 32 + "\U0010ffff" + "z")
def test_a_text_lies_between_its_bounds_however_they_were_cut_short(text: str) -> None:
    raw = text.encode()
    low, high = (bound(raw, "string", is_high=is_high) for is_high in (False, True))
    assert low.encode() <= raw <= high.encode()
