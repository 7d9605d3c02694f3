"""Where the rows of a source table and of its lake table differ. Runs in a task, on the rows that it holds.

Rows of both sides are numbered so that equal rows have one number (`model.rows.row`), and each side's are counted:

    source   (1, a)  (2, b)  (2, b)       numbers  0 1 1     counts of 0, 1, 2:  1 2 0
    lake     (1, a)  (2, b)  (3, c)                0 1 2                         1 1 1     2 lacks a row, 3 is extra

This is exact, without hashes. Rows of one key must be compared together; what is found of several groups of keys is
joined by `Compared.joined`. Nothing here knows a source or a lake.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator, Sequence
from decimal import Decimal
from enum import IntEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.engine.dividing import TooLargeError
from tailrace.model.rows.codes import key_codes as codes_of
from tailrace.model.rows.key import key_codes
from tailrace.model.rows.nested import is_nested
from tailrace.model.rows.row import row_codes
from tailrace.verify.report import Compared, KeyDifference, RowDifference

COUNT_BYTES = 16
"""What the two counts of a row take."""


class Side(IntEnum):
    """Where a row was read: the place of its count."""

    SOURCE = 0
    LAKE = 1


class BothSides:
    """Rows of both sides, each with how often each side has it. `TooLargeError` when they take more than `bytes_max`
    although rows that are equal are held once."""

    def __init__(self, shape: Any, bytes_max: int | None = None) -> None:
        """All rows have the Arrow schema `shape`. Without `bytes_max`, all are held as they come."""
        self._shape, self._bytes_max = shape, bytes_max
        self._batches: list[Any] = []
        self._counts: list[Any] = []
        self._bytes = 0

    def add(self, batch: Any, side: Side) -> None:
        counts = np.zeros((batch.num_rows, len(Side)), np.int64)
        counts[:, side] = 1
        self._hold([batch], counts)
        if self._bytes_max is not None and self._bytes > self._bytes_max:
            self._join_equal()
            # With less room than that, the next batches would each cost a look at all rows.
            if self._bytes > self._bytes_max // 2:
                raise TooLargeError

    @property
    def rows(self) -> Any:
        return pa.Table.from_batches(self._batches, self._shape)

    @property
    def counts(self) -> Any:
        """Of each row: in the source, and in the lake."""
        return np.concatenate(self._counts) if self._counts else np.zeros((0, len(Side)), np.int64)

    def _hold(self, batches: Sequence[Any], counts: Any) -> None:
        self._batches += batches
        self._counts.append(counts)
        self._bytes += sum(batch.nbytes for batch in batches) + COUNT_BYTES * len(counts)

    def _join_equal(self) -> None:
        rows, counts = self.rows, self.counts
        numbers, different = row_codes(rows.columns)
        first = np.unique(numbers, return_index=True)[1]
        self._batches, self._counts, self._bytes = [], [], 0
        self._hold(rows.take(pa.array(first)).to_batches(), _sums(numbers, counts, different))


def compare(both: BothSides, key: Sequence[str], keys_max: int) -> Compared:
    """What differs, and the first keys of it. A key that several rows have is no error here."""
    rows, counts = both.rows, both.counts
    source_rows, lake_rows = counts.sum(axis=0).tolist()
    numbers, different = row_codes(rows.columns)
    sums = _sums(numbers, counts, different)
    is_odd = (sums[:, Side.SOURCE] != sums[:, Side.LAKE])[numbers]
    if not is_odd.any():
        return Compared(source_rows, lake_rows)
    # All rows of the keys of those, so that one that is there too often is told from one that changed.
    keys, different = _key_numbers(rows, key)
    chosen = np.flatnonzero((np.bincount(keys[is_odd], minlength=different) > 0)[keys])
    found = _Differing(rows.take(pa.array(chosen)), counts[chosen], key)
    return Compared(source_rows, lake_rows, found.counts, tuple(found.first(keys_max)))


class _Differing:
    """The rows, on either side, of keys whose rows differ."""

    def __init__(self, rows: Any, row_counts: Any, key: Sequence[str]) -> None:
        self._rows, self._row_counts, self._key = rows, row_counts, key
        self._has_nested = any(is_nested(rows.schema.field(name).type) for name in key)
        self._keys, different = _key_numbers(rows, key)
        self._counts = _sums(self._keys, row_counts, different)

    @property
    def counts(self) -> dict[RowDifference, int]:
        """How many keys differ in each way."""
        source, lake = self._counts[:, Side.SOURCE], self._counts[:, Side.LAKE]
        found = {
            RowDifference.MISSING: int((source > lake).sum()),
            RowDifference.EXTRA: int((source < lake).sum()),
            RowDifference.CHANGED: int((source == lake).sum()),
        }
        return {difference: count for difference, count in found.items() if count}

    def first(self, keys_max: int) -> Iterator[KeyDifference]:
        """In the order of their keys."""
        _, places = np.unique(self._keys, return_index=True)
        shown = self._rows.select(list(dict.fromkeys(self._key))).take(pa.array(places))
        ordered = self._sortable(shown)
        order = pc.sort_indices(ordered, [(name, "ascending") for name in ordered.column_names])
        for index in order[:keys_max].to_pylist():
            texts = {name: _text(self._as_key(shown.column(name)[index].as_py())) for name in self._key}
            place = tuple(_place(column[index].as_py()) for column in ordered.columns)
            yield self._difference(int(self._keys[places[index]]), texts, place)

    def _sortable(self, shown: Any) -> Any:
        """By what keys are put in order. Arrow puts no arrays in order: keys that differ in one come in the order of
        their codes, which is the same in every task."""
        columns = [column for column in shown.columns if not is_nested(column.type)]
        if self._has_nested:
            codes = codes_of([_whole(column) for column in shown.columns], whole_rows=True)
            columns += [pa.array(codes.first), pa.array(codes.second)]
        return pa.table(columns, [str(index) for index in range(len(columns))])

    def _as_key(self, value: Any) -> Any:
        """-0.0 and 0.0 are one key, which is called 0.0. Where arrays are part of keys, they are two."""
        return value + 0.0 if isinstance(value, float) and not self._has_nested else value

    def _difference(self, number: int, key: dict[str, str | None], place: tuple[Any, ...]) -> KeyDifference:
        source_rows, lake_rows = self._counts[number].tolist()
        if source_rows > lake_rows:
            return KeyDifference(key, RowDifference.MISSING, source_rows, lake_rows, place=place)
        if source_rows < lake_rows:
            return KeyDifference(key, RowDifference.EXTRA, source_rows, lake_rows, place=place)
        return KeyDifference(key, RowDifference.CHANGED, source_rows, lake_rows, self._changed(number), place)

    def _changed(self, number: int) -> tuple[str, ...]:
        """The columns whose values the sides do not have equally often."""
        chosen = np.flatnonzero(self._keys == number)
        rows, counts = self._rows.take(pa.array(chosen)), self._row_counts[chosen]
        names = []
        for name in rows.column_names:
            values, different = row_codes([rows.column(name)])
            sums = _sums(values, counts, different)
            if (sums[:, Side.SOURCE] != sums[:, Side.LAKE]).any():
                names.append(name)
        return tuple(names)


def _key_numbers(rows: Any, key: Sequence[str]) -> tuple[Any, int]:
    columns = [rows.column(name) for name in key]
    if any(is_nested(column.type) for column in columns):
        return row_codes(columns)
    return key_codes(pa.StructArray.from_arrays(list(map(_whole, columns)), [f"key{i}" for i in range(len(key))]))


def _sums(numbers: Any, counts: Any, different: int) -> Any:
    """The counts of all rows that have a number, for each number."""
    found = np.zeros((different, len(Side)), np.int64)
    for side in Side:
        found[:, side] = np.bincount(numbers, counts[:, side], minlength=different)
    return found


def _whole(column: Any) -> Any:
    """A column in one piece."""
    return pa.concat_arrays(column.chunks) if column.chunks else pa.array([], column.type)


def _place(value: Any) -> tuple[int, Any]:
    """Puts values of one type in the order that Arrow puts them in: null last, and NaN before it."""
    if value is None:
        return 2, 0
    return (1, 0) if isinstance(value, float) and math.isnan(value) else (0, value)


def _text(value: Any) -> str | None:
    """As Spark prints it."""
    match value:
        case None:
            return None
        case bytes():
            return f"\\x{value.hex()}"
        case bool():
            return str(value).lower()
        case datetime.datetime():
            whole, _, fraction = str(value.replace(tzinfo=None)).partition(".")
            return f"{whole}.{fraction.rstrip('0')}" if fraction else whole
        case Decimal():
            return f"{value:f}"
        case _:
            return str(value)
