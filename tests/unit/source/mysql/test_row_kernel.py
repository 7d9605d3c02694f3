"""The machine code that walks rows, against Python that walks them a byte at a time, on any bytes."""

from __future__ import annotations

from decimal import Context, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.source.mysql.values import row_kernel as kernel
from tailrace.source.mysql.values.column_type import decimal_bytes
from tailrace.source.mysql.values.json_text import decimal_text
from tailrace.source.mysql.values.row_kernel import ABSENT, NEW, NO_ROW, NULL, OLD

WIDTHS = st.lists(st.sampled_from([1, 2, 4, 8, -1, -2, -3, -4]), min_size=1, max_size=12)
Found = tuple[int, list[int]]


class ShortError(Exception):
    """The bytes end inside a row."""


def value_length(data: bytes, at: int, width: int) -> tuple[int, int]:
    """Where a value begins, and its length."""
    if width >= 0:
        begin, length = at, width
    else:
        if at - width > len(data):
            raise ShortError
        begin, length = at - width, int.from_bytes(data[at : at - width], "little")
    if begin + length > len(data):
        raise ShortError
    return begin, length


def image(data: bytes, at: int, widths: list[int], present: list[bool]) -> tuple[int, list[int]]:
    """Where an image ends, and the length of each column's value."""
    nulls, at = at, at + (sum(present) + 7) // 8
    if at > len(data):
        raise ShortError
    lengths, place = [], 0
    for width, is_there in zip(widths, present, strict=True):
        if not is_there:
            lengths.append(ABSENT)
            continue
        if data[nulls + place // 8] >> place % 8 & 1:
            lengths.append(NULL)
        else:
            begin, length = value_length(data, at, width)
            lengths.append(length)
            at = begin + length
        place += 1
    return at, lengths


def find(data: bytes, widths: list[int], which: int) -> tuple[list[int], list[int]] | None:
    """The lengths of the old and the new values of one logged row; None for what is none."""
    none = [NO_ROW] * len(widths)
    size = (len(widths) + 7) // 8
    try:
        if not data or data[0] > 1:
            return None
        at, presents = 1, []
        for image_bit in (OLD, NEW):
            present = [True] * len(widths)
            if which & image_bit and data[0] == 1:
                if at + size > len(data):
                    return None
                present = [bool(data[at + place // 8] >> place % 8 & 1) for place in range(len(widths))]
                at += size
            presents.append(present)
        found = [none, none]
        for place, image_bit in enumerate((OLD, NEW)):
            if which & image_bit:
                at, found[place] = image(data, at, widths, presents[place])
    except ShortError:
        return None
    return (found[0], found[1]) if at == len(data) else None


@given(WIDTHS, st.sampled_from([OLD, NEW, OLD | NEW]), st.data())
def test_values_are_found_where_a_walk_by_hand_finds_them(widths: list[int], which: int, data: st.DataObject) -> None:
    head = data.draw(st.sampled_from([b"\0", b"\1", b"\2", b""]))
    row = head + bytes(data.draw(st.lists(st.sampled_from([0, 1, 2, 3, 7, 255]), max_size=60)))
    # What lies behind the row belongs to the next one.
    whole = np.frombuffer(b"before" + row + bytes(range(50)), np.uint8)
    rows = np.array([[6], [6 + len(row)], [which]], np.int64)
    old, new = ((np.zeros((len(widths), 1), np.int64), np.full((len(widths), 1), NO_ROW)) for _ in range(2))
    wrong = kernel.find(whole, rows, np.array(widths, np.int64), old, new)
    expected = find(row, widths, which)
    assert (wrong < 0) == (expected is not None)
    if expected is not None:
        assert (old[1][:, 0].tolist(), new[1][:, 0].tolist()) == expected


@given(WIDTHS, st.integers(1, 2), st.binary(max_size=80), st.data())
def test_rows_are_cut_where_a_walk_by_hand_cuts_them(
    widths: list[int], images: int, content: bytes, data: st.DataObject
) -> None:
    presents = [data.draw(st.lists(st.booleans(), min_size=len(widths), max_size=len(widths))) for _ in range(images)]
    ends, at, is_whole = list[int](), 0, True
    try:
        while at < len(content) and is_whole:
            begin = at
            for present in presents:
                at, _ = image(content, at, widths, present)
            is_whole = at > begin
            ends.append(at)
    except ShortError:
        is_whole = False
    bounds = np.zeros(100, np.int64)
    sent = np.frombuffer(content + bytes(range(40)), np.uint8)
    span = np.array((0, len(content)), np.int64)
    rows = kernel.cut(sent, span, np.array(widths, np.int64), np.array(presents, np.bool_), bounds)
    assert rows == (len(ends) if is_whole else -1)
    assert not is_whole or bounds[:rows].tolist() == ends


def test_more_rows_than_there_is_room_for_are_told() -> None:
    sent, span = np.zeros(6, np.uint8), np.array((0, 6), np.int64)
    found = kernel.cut(sent, span, np.array([1], np.int64), np.ones((1, 1), np.bool_), np.zeros(2, np.int64))
    assert found == -2


@pytest.mark.parametrize(("digits", "scale"), [(1, 0), (1, 1), (9, 9), (10, 5), (20, 0), (38, 0), (38, 19), (38, 38)])
@given(data=st.data())
def test_a_decimal_is_the_number_that_its_digits_are(digits: int, scale: int, data: st.DataObject) -> None:
    """The text is made of the same bytes, but a group of digits at a time and without a number of 128 bits."""
    number = data.draw(st.integers(-(10**digits) + 1, 10**digits - 1))
    written = to_bytes(number, digits, scale)
    out = np.zeros((1, 2), np.uint64)
    begins, lengths = np.array([0]), np.array([len(written)])
    kernel.decimals(np.frombuffer(written, np.uint8), begins, lengths, (digits - scale, scale), out)
    assert int.from_bytes(out.tobytes(), "little", signed=True) == number
    assert Decimal(decimal_text(written, digits, scale)) == Decimal(number).scaleb(-scale, Context(prec=50))


def to_bytes(number: int, digits: int, scale: int) -> bytes:
    """As the server writes it: groups of nine digits from the point outwards."""
    text = str(abs(number)).zfill(digits)
    whole, fraction = text[: digits - scale], text[digits - scale :]
    groups = [whole[: len(whole) % 9], *(whole[at : at + 9] for at in range(len(whole) % 9, len(whole), 9))]
    groups += [fraction[at : at + 9] for at in range(0, len(fraction), 9)]
    data = b"".join(int(group).to_bytes(decimal_bytes(len(group)), "big") for group in groups if group)
    data = bytes((data[0] ^ 0x80, *data[1:]))
    return bytes(byte ^ 0xFF for byte in data) if number < 0 else data
