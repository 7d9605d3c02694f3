"""Codes of keys: equal keys have equal codes, in every process.

A key that is one whole number, date or time is its own code. Any other gets one of 128 bits, mixed from its values, for
which two keys among 10^12 meet with a chance of 10^-14.

Keys are equal as `model.rows.key` says: -0.0 is 0.0 and NaN is NaN. Rows of a table without a key are their own keys,
equal as `model.rows.row` says: null is null, and -0.0 is not 0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import xxhash

from tailrace.model.rows.nested import as_binary, is_nested

_SEEDS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F)
_FACTORS = (0xFF51AFD7ED558CCD, 0x9FB21C651E98DF25)
_NULL_WORD = np.uint64(0xD6E8FEB86659FD93)
_GOLDEN = np.uint64(_SEEDS[0])
_LONG_BYTES = 64
"""Values longer than this are digested one by one; shorter ones eight bytes of all of them at a time."""


@dataclass(frozen=True)
class KeyCodes:
    """The codes of some keys. `second` is the other half of a code; None where the first is all of it."""

    first: np.ndarray
    second: np.ndarray | None

    def __len__(self) -> int:
        return len(self.first)

    def take(self, rows: np.ndarray) -> KeyCodes:
        return KeyCodes(self.first[rows], None if self.second is None else self.second[rows])

    @classmethod
    def joined(cls, parts: Sequence[KeyCodes]) -> KeyCodes:
        """The codes of all parts, one after the other. There is at least one part."""
        second = [part.second for part in parts if part.second is not None]
        return cls(np.concatenate([part.first for part in parts]), np.concatenate(second) if second else None)


def key_codes(columns: Sequence[pa.Array], *, whole_rows: bool = False, exact: pa.Array | None = None) -> KeyCodes:
    """A code for each key, whose parts are in the columns; for each row with `whole_rows`. No part of a key is null.

    `exact` are the rows' maps (`model.rows.exact`). A row without one has the code that it would have if there were
    none.
    """
    if len(columns) == 1 and _is_whole_number(columns[0].type) and not whole_rows:
        return KeyCodes(_words(columns[0])[0], None)
    halves = [np.full(len(columns[0]), seed, np.uint64) for seed in _SEEDS]
    for column in columns:
        _mix_column(halves, column, whole_rows=whole_rows)
    if exact is not None and exact.null_count < len(exact):
        rows = np.flatnonzero(exact.is_valid().to_numpy(zero_copy_only=False))
        some = [half[rows] for half in halves]
        _mix_column(some, exact.take(pa.array(rows)), whole_rows=True)
        for half, mixed in zip(halves, some, strict=True):
            half[rows] = mixed
    return KeyCodes(halves[0], halves[1])


def _mix_column(halves: Sequence[np.ndarray], column: pa.Array, *, whole_rows: bool) -> None:
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    for half, factor in zip(halves, _FACTORS, strict=True):
        _mix(half, np.where(valid, np.uint64(1), _NULL_WORD), factor)
    if is_nested(column.type):
        column = as_binary(column, _element_words)
    if _is_text(column.type):
        _mix_text(halves, column.fill_null("" if pa.types.is_string(column.type) else b""))
        return
    for word in _words(column, whole_rows=whole_rows):
        for half, factor in zip(halves, _FACTORS, strict=True):
            _mix(half, np.where(valid, word, np.uint64(0)), factor)


def _element_words(values: pa.Array) -> np.ndarray:
    codes = key_codes([values], whole_rows=True)
    assert codes.second is not None
    return np.stack([codes.first, codes.second], axis=1)


def _mix(half: np.ndarray, word: np.ndarray, factor: int) -> None:
    half ^= word
    half *= np.uint64(factor)
    half ^= half >> np.uint64(32)


def _is_whole_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_temporal(type_))


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_binary(type_) or pa.types.is_large_binary(type_))


def _words(column: pa.Array, *, whole_rows: bool = False) -> list[np.ndarray]:
    """Values of a fixed size as 64-bit words. What a null has there means nothing."""
    type_ = column.type
    if pa.types.is_decimal(type_):
        # Two words per value; the offset counts values.
        pairs = np.frombuffer(column.buffers()[1], np.uint64)[2 * column.offset :][: 2 * len(column)]
        return [pairs[0::2], pairs[1::2]]
    if pa.types.is_floating(type_):
        values = column.fill_null(0.0).to_numpy(zero_copy_only=False).astype(np.float64)
        if not whole_rows:
            values += 0.0
        values[np.isnan(values)] = np.nan
        return [values.view(np.uint64)]
    if pa.types.is_boolean(type_):
        return [column.fill_null(False).to_numpy(zero_copy_only=False).astype(np.uint64)]
    whole = column.cast(pa.int32()) if pa.types.is_date32(type_) else column
    values = whole.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    return [values.view(np.uint64)]


def _mix_text(halves: Sequence[np.ndarray], column: pa.Array) -> None:
    """Mix in each value's length and bytes, eight bytes of every value at a time."""
    width = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    offsets = np.frombuffer(column.buffers()[1], width)[column.offset :][: len(column) + 1].astype(np.int64)
    starts, lengths = offsets[:-1], np.diff(offsets)
    for half, factor in zip(halves, _FACTORS, strict=True):
        _mix(half, lengths.view(np.uint64), factor)
    content = column.buffers()[2]
    data = (bytes(content) if content is not None else b"") + bytes(8)
    # One overlapping word for each byte.
    words = np.ndarray((len(data) - 7,), np.dtype("<u8"), buffer=data, strides=(1,))
    long = lengths > _LONG_BYTES
    for row in np.flatnonzero(long).tolist():
        digest = xxhash.xxh3_128_digest(data[starts[row] : starts[row] + lengths[row]])
        for half, word in zip(halves, np.frombuffer(digest, np.uint64), strict=True):
            half[row] ^= word
    rows = np.flatnonzero(~long & (lengths > 0))
    at = 0
    while len(rows):
        found = words[starts[rows] + at]
        left = np.minimum(lengths[rows] - at, 8)
        found &= np.uint64(0xFFFFFFFFFFFFFFFF) >> ((8 - left) * 8).astype(np.uint64)
        for half, factor in zip(halves, _FACTORS, strict=True):
            some = half[rows]
            _mix(some, found, factor)
            half[rows] = some
        at += 8
        rows = rows[lengths[rows] > at]


def tasks_of(codes: np.ndarray, tasks: int) -> np.ndarray:
    """Which of some tasks gets each code; equal codes get the same one. Codes that follow one another, or are all even,
    still go to all tasks alike."""
    return ((codes * _GOLDEN) >> np.uint64(32)) % np.uint64(tasks)
