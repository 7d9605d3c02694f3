"""Details: the bytes of a commit that only its source reads, as the index keeps them.

A transaction's detail is the last of its lists in `.lists`: its bytes, filled up with zeros to whole words. The row has
the number of bytes. A transaction without a detail has no words there and costs nothing.

    .lists    | tables | aborted | detail, filled up | tables | aborted | detail, ...
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tailrace.log.files.record import Array

WORD_BYTES = 8


def detail_words(rows: Array) -> Array:
    """How many words each row's detail takes."""
    words: Array = (rows["detail_bytes"].astype(np.int64) + (WORD_BYTES - 1)) // WORD_BYTES
    return words


def list_words(rows: Array) -> Array:
    """How many words each row's lists take, its detail included."""
    words: Array = rows["relations"] + rows["aborted"] + detail_words(rows)
    return words


def add_details(rows: Array, lists: Array, source: Array, starts: Array, sizes: Array) -> tuple[Array, Array]:
    """The rows and their lists with details. Each row's lies in `source`, `sizes` bytes from `starts` on."""
    plain = rows["relations"] + rows["aborted"]
    rows["detail_bytes"] = sizes
    words = detail_words(rows)
    rows["lists_start"] = np.cumsum(plain + words) - (plain + words)
    filled = np.zeros(int((plain + words).sum()), dtype=np.uint64)
    filled[_is_plain(plain, words)] = lists
    target = filled.view(np.uint8)
    places = (rows["lists_start"] + plain) * WORD_BYTES
    for place, start, size in zip(places.tolist(), starts.tolist(), sizes.tolist(), strict=True):
        target[place : place + size] = source[start : start + size]
    return rows, filled


def split_details(rows: Array, lists: Array) -> tuple[Array, Array]:
    """The lists of these rows without details, and the details' words, each in the rows' order."""
    words = detail_words(rows)
    if not words.any():
        return lists, lists[:0]
    is_plain = _is_plain(rows["relations"] + rows["aborted"], words)
    return lists[is_plain], lists[~is_plain]


def detail_column(rows: Array, words: Array) -> pa.Array:
    """The details of these rows as a binary column."""
    if len(words) == 0:
        return pa.repeat(pa.scalar(b"", pa.binary()), len(rows))
    content = words.tobytes()
    starts = (np.cumsum(detail_words(rows)) - detail_words(rows)) * WORD_BYTES
    sizes = rows["detail_bytes"].tolist()
    return pa.array([content[a : a + size] for a, size in zip(starts.tolist(), sizes, strict=True)], pa.binary())


def _is_plain(plain: Array, words: Array) -> Array:
    """For each word of the lists, whether it is no part of a detail."""
    counts = np.stack([plain, words], axis=1).ravel()
    return np.repeat(np.arange(len(counts)) % 2 == 0, counts)
