"""Keys found in a file of rows are those that a comparison of values finds."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.doors.damage import DAMAGES

from tailrace.lake.key_index import KeyIndex
from tailrace.model.rows.codes import key_codes

TYPES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (pa.int16(), st.integers(-3, 3)),
    (pa.int64(), st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1])),
    (pa.string(), st.sampled_from(["", "\0", "a", "aa", "ä" * 4, "x" * 8, "x" * 9, "x" * 64, "x" * 65, "y" * 65])),
    (pa.binary(), st.sampled_from([b"", b"\0", b"\0\0", b"12345678", b"1234567\0", bytes(100)])),
    (pa.float64(), st.sampled_from([0.0, -0.0, math.nan, -math.nan, math.inf, 1.5])),
    (pa.float32(), st.sampled_from([0.0, -0.0, math.nan, 1.5])),
    (pa.decimal128(20, 2), st.sampled_from([Decimal("0.00"), Decimal("-1.00"), Decimal("1e15")])),
    (pa.bool_(), st.booleans()),
    (pa.date32(), st.sampled_from([date(1, 1, 1), date(1970, 1, 1), date(9999, 12, 31)])),
    (pa.list_(pa.int32()), st.lists(st.none() | st.integers(0, 2), max_size=2)),
    (pa.list_(pa.string()), st.lists(st.none() | st.sampled_from(["", "a", "ab"]), max_size=2)),
    (pa.timestamp("us"), st.sampled_from([datetime(1, 1, 1), datetime(2024, 1, 1), datetime(2024, 1, 1, 0, 0, 0, 1)])),
]


def same(one: Any, other: Any, *, whole_rows: bool) -> bool:
    """Minus zero is another row, but not another key."""
    if isinstance(one, float) and isinstance(other, float):
        is_equal = one == other and (not whole_rows or math.copysign(1, one) == math.copysign(1, other))
        return is_equal or (math.isnan(one) and math.isnan(other))
    return bool(one == other)


@st.composite
def keys(draw: st.DrawFn) -> tuple[list[Any], list[Any], list[Any], bool]:
    """Types of a key, some rows' keys and some wanted ones, and whether rows are their own keys: parts may be null."""
    types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3))
    whole_rows = draw(st.booleans())
    parts = [st.none() | values if whole_rows else values for _, values in types]
    row = st.tuples(*parts)
    return [each for each, _ in types], draw(st.lists(row, max_size=12)), draw(st.lists(row, max_size=6)), whole_rows


def columns(rows: list[Any], types: list[Any], offset: int) -> list[pa.Array]:
    """Slices of longer arrays, so that buffers begin elsewhere than values."""
    padded = [*([rows[0]] * offset if rows else ()), *rows]
    skipped = len(padded) - len(rows)
    return [pa.array([row[n] for row in padded], type_).slice(skipped) for n, type_ in enumerate(types)]


@given(keys(), st.integers(0, 3))
def test_every_meeting_is_found_and_no_other(case: tuple[list[Any], list[Any], list[Any], bool], offset: int) -> None:
    types, rows, wanted, whole_rows = case
    index = KeyIndex.of_codes(key_codes(columns(rows, types, offset), whole_rows=whole_rows))
    which, positions = index.find(key_codes(columns(wanted, types, offset), whole_rows=whole_rows))
    expected = {
        (n, p)
        for n, one in enumerate(wanted)
        for p, other in enumerate(rows)
        if all(same(a, b, whole_rows=whole_rows) for a, b in zip(one, other, strict=True))
    }
    assert sorted(zip(which.tolist(), positions.tolist(), strict=True)) == sorted(expected)


def test_a_saved_index_is_the_same_and_a_damaged_one_or_one_of_other_rows_is_none(tmp_path: Path) -> None:
    names = pa.array([f"key {number}" for number in range(1000)])
    index, path = KeyIndex.of([names]), tmp_path / "orders.keys"
    assert KeyIndex.load(path, "these") is None
    index.save(path, "these")
    loaded = KeyIndex.load(path, "these")
    assert loaded is not None
    wanted = key_codes([pa.array(["key 7", "key 1000", "key 999"])])
    assert sorted(zip(*loaded.find(wanted), strict=True)) == [(0, 7), (2, 999)]
    assert KeyIndex.load(path, "others") is None
    whole = path.read_bytes()
    for damage in DAMAGES:
        path.write_bytes(whole)
        damage(path)
        assert KeyIndex.load(path, "these") is None, damage
    for place in range(0, len(whole), len(whole) // 100):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        damaged = KeyIndex.load(path, "these")
        # Between what counts there is padding.
        assert damaged is None or sorted(zip(*damaged.find(wanted), strict=True)) == [(0, 7), (2, 999)], place


def test_codes_of_many_keys_are_all_different() -> None:
    texts = pa.array([f"{number:x}" for number in range(200_000)])
    codes = key_codes([texts, pa.array(np.arange(200_000) % 7)])
    assert len(np.unique(codes.first)) == len(np.unique(codes.second)) == 200_000
