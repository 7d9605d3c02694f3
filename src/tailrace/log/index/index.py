"""The index: what can be known of a segment without reading it. Derived, so it may be lost.

Each segment has four files beside it, written only after the segment's own bytes are durable:

    .frames         one row a frame: its position, its place in the file, which tables it may hold
    .transactions   one row a transaction that committed in this segment; row 0 has the segment's first sequence number
    .lists          the tables, the aborted sub-transactions and the details of those transactions
    .marks          schemas, valid from a commit in this segment on; ended when it is sealed

Rows have a fixed width, so a sequence number is an address. Each row carries a check over itself and its lists; a
reader stops before the first row that does not agree, which is how far an index goes that a crash has torn.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from tailrace.log.files.record import Array, distinct
from tailrace.log.index.details import detail_words, list_words, split_details

TRANSACTION = np.dtype(
    [
        ("seq", "<i8"),
        ("xid", "<u8"),
        ("commit_ordinal", "<u8"),
        ("end_ordinal", "<u8"),
        ("commit_time_us", "<i8"),
        ("time_max_us", "<i8"),
        ("first_position", "<i8"),
        ("commit_position", "<i8"),
        ("changes", "<i8"),
        ("bytes", "<i8"),
        ("undos", "<i8"),
        ("streamed", "<u4"),
        ("detail_bytes", "<u4"),
        ("lists_start", "<i8"),
        ("relations", "<i8"),
        ("aborted", "<i8"),
        ("check", "<u8"),
    ]
)
"""`time_max_us` is the latest commit time up to here; `relations` and `aborted` are counts of values in `.lists`, and
`detail_bytes` is how long the detail is that follows them there."""

FRAME = np.dtype(
    [
        ("position", "<i8"),
        ("rows", "<i8"),
        ("offset", "<i8"),
        ("bytes", "<i8"),
        ("keys", "<i8"),
        ("tables", "<u8"),
        ("check", "<u8"),
    ]
)
"""`tables` has a bit for each relation in the frame; see `table_bits`."""

_FACTORS = np.array([pow(0x9E3779B97F4A7C15, i + 1, 1 << 64) | 1 for i in range(16)], dtype=np.uint64)
_MARK = struct.Struct("<qqQQIBxxxI4xQ")
"""position, since, xid, ordinal, relation, kind, payload length, xxh3 of the payload and of what precedes it."""


END_OF_MARKS = 0
"""Kind of the mark that follows a sealed segment's last one; its position is how many there are."""


@dataclass(frozen=True)
class Mark:
    """A SCHEMA record."""

    position: int
    kind: int
    relation: int
    xid: int
    ordinal: int
    payload: bytes
    since: int = 0
    """From this position on it is valid for all: where its transaction committed, or where it lies itself."""

    def to_bytes(self) -> bytes:
        fields = (self.position, self.since, self.xid, self.ordinal, self.relation, self.kind, len(self.payload))
        digest = xxhash.xxh3_64_intdigest(_MARK.pack(*fields, 0) + self.payload)
        return _MARK.pack(*fields, digest) + self.payload


@dataclass
class Derived:
    """What a batch of records adds to the index. `lists_start` counts from the start of `lists`."""

    transactions: Array
    lists: Array
    marks: list[Mark] = field(default_factory=list)


def parse_marks(content: bytes, start: int = 0) -> Iterator[tuple[Mark, int]]:
    """Marks and where each ends, up to the first that is not whole."""
    while start + _MARK.size <= len(content):
        position, since, xid, ordinal, relation, kind, length, _ = _MARK.unpack_from(content, start)
        end = start + _MARK.size + length
        payload = content[start + _MARK.size : end]
        mark = Mark(position, kind, relation, xid, ordinal, payload, since)
        if len(payload) < length or mark.to_bytes()[: _MARK.size] != content[start : start + _MARK.size]:
            return
        yield mark, end
        start = end


def are_ended(marks: list[Mark]) -> bool:
    """Whether these are all marks of a sealed segment."""
    return bool(marks) and marks[-1].kind == END_OF_MARKS and marks[-1].position == len(marks) - 1


def read_from(path: Path, offset: int) -> bytes:
    """What a file holds from `offset` on; nothing where it is not there."""
    try:
        with path.open("rb", buffering=0) as file:
            file.seek(offset)
            return file.read()
    except FileNotFoundError:
        return b""


def load_rows(path: Path, dtype: np.dtype[Any], skip: int, count: int) -> Array:
    """Whole items of a file; fewer than asked for where it ends earlier, none where it is not there."""
    try:
        with path.open("rb", buffering=0) as file:
            count = min(count, os.fstat(file.fileno()).st_size // dtype.itemsize - skip)
            if skip < 0 or count <= 0:
                return np.zeros(0, dtype=dtype)
            content = os.pread(file.fileno(), count * dtype.itemsize, skip * dtype.itemsize)
    except FileNotFoundError:
        return np.zeros(0, dtype=dtype)
    return np.frombuffer(content[: len(content) // dtype.itemsize * dtype.itemsize], dtype=dtype)


def table_bits(relations: Array) -> int:
    """A set of tables as 64 bits; tables that share a bit are only read in vain."""
    tables = distinct(relations)
    bits = tables[tables != 0].astype(np.uint64) * _FACTORS[0] >> np.uint64(58)
    return int(np.bitwise_or.reduce(np.uint64(1) << bits))


def seal_transactions(rows: Array, lists: Array) -> Array:
    """The rows with their checks. `lists` starts where the first row's lists start."""
    rows["check"] = _row_checks(rows) ^ _list_checks(rows, lists)
    return rows


def sound_transactions(rows: Array, lists: Array) -> int:
    """How many rows from the first one on are as they were written."""
    start = int(rows["lists_start"][0]) if len(rows) else 0
    counts = list_words(rows)
    ends = rows["lists_start"] + counts - start
    sane = (rows["relations"] >= 0) & (rows["aborted"] >= 0) & (ends <= len(lists)) & (np.cumsum(counts) == ends)
    rows = rows[: _leading(sane)]
    return _leading(rows["check"] == (_row_checks(rows) ^ _list_checks(rows, lists)))


def seal_frames(rows: Array) -> Array:
    rows["check"] = _row_checks(rows)
    return rows


def sound_frames(rows: Array) -> int:
    """How many rows from the first one on are as they were written."""
    return _leading(rows["check"] == _row_checks(rows))


def list_owners(rows: Array) -> tuple[Array, Array]:
    """For each value in the rows' lists, without details: its row, and whether it is an aborted sub-transaction."""
    counts = np.stack([rows["relations"], rows["aborted"]], axis=1).ravel()
    owner = np.repeat(np.arange(len(counts)), counts)
    return owner // 2, owner % 2 == 1


def _row_checks(rows: Array) -> Array:
    words = np.ascontiguousarray(rows).view(np.uint64).reshape(len(rows), rows.dtype.itemsize // 8)[:, :-1]
    checks: Array = (words ^ (words >> np.uint64(29))) @ _FACTORS[: words.shape[1]] + _FACTORS[-1]
    return checks


def _list_checks(rows: Array, lists: Array) -> Array:
    values, details = split_details(rows, lists[: int(list_words(rows).sum())])
    if rows["aborted"].any():
        values = values + list_owners(rows)[1].astype(np.uint64)
    checks = _sums(values, rows["relations"] + rows["aborted"])
    if len(details):
        words = detail_words(rows)
        # The order of a detail's words matters, so each is checked together with its place.
        place = np.arange(len(details)) - np.repeat(np.cumsum(words) - words, words)
        checks += _sums(details + (place + 1).astype(np.uint64) * _FACTORS[1], words)
    return checks


def _sums(values: Array, counts: Array) -> Array:
    """For each row, the sum of its values, mixed."""
    ends = np.cumsum(counts)
    mixed = values * _FACTORS[0]
    totals = np.append(np.uint64(0), np.cumsum(mixed ^ (mixed >> np.uint64(31)), dtype=np.uint64))
    sums: Array = totals[ends] - totals[ends - counts]
    return sums


def _leading(good: Array) -> int:
    return len(good) if good.all() else int(np.argmin(good))
