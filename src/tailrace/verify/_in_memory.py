"""Tables that are small, compared by this process: neither Spark nor a hash is needed for rows that fit in memory.

Rows of both sides are numbered so that equal rows have one number (`model.row`), and each side's are counted:

    source   (1, a)  (2, b)  (2, b)       numbers  0 1 1     counts of 0, 1, 2:  1 2 0
    lake     (1, a)  (2, b)  (3, c)                0 1 2                         1 1 1     2 lacks a row, 3 is extra

Nothing here knows a source or a lake.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.model.exact import together
from tailrace.model.key import key_codes
from tailrace.model.nested import is_nested
from tailrace.model.row import row_codes
from tailrace.verify.report import Compared, Difference, KeyDifference


class TooLargeError(Exception):
    """The rows are to be compared elsewhere."""


def rows_within(batches: Iterable[Any], schema: Any, bytes_max: int) -> Any:
    """The rows of all batches as one table. `TooLargeError` as soon as they are more than this."""
    taken, size = [], 0
    for batch in batches:
        taken.append(batch)
        size += batch.nbytes
        if size > bytes_max:
            raise TooLargeError
    return together(taken, schema)


def compare(source: Any, lake: Any, key: Sequence[str], keys_max: int) -> Compared:
    """Two tables of the same columns. A key that several rows have is no error here."""
    both = pa.concat_tables([source, lake]).combine_chunks()
    in_source = np.arange(both.num_rows) < source.num_rows
    numbers, different = row_codes([_whole(both, name) for name in both.column_names])
    is_odd = (_counts(numbers, in_source, different) != _counts(numbers, ~in_source, different))[numbers]
    if not is_odd.any():
        return Compared(source.num_rows, lake.num_rows)
    # All rows of the keys of those, so that one that is there too often is told from one that changed.
    keys, _ = _key_numbers(both, key)
    rows = np.flatnonzero(np.isin(keys, keys[is_odd]))
    found = _Differing(both.take(pa.array(rows)), in_source[rows], key)
    return Compared(source.num_rows, lake.num_rows, found.counts, tuple(found.first(keys_max)))


class _Differing:
    """The rows, on either side, of keys whose rows differ."""

    def __init__(self, rows: Any, in_source: Any, key: Sequence[str]) -> None:
        self._rows, self._in_source, self._key = rows.combine_chunks(), in_source, key
        self._keys, count = _key_numbers(self._rows, key)
        self._source_counts = _counts(self._keys, in_source, count)
        self._lake_counts = _counts(self._keys, ~in_source, count)

    @property
    def counts(self) -> dict[Difference, int]:
        """How many keys differ in each way."""
        more, fewer = self._source_counts > self._lake_counts, self._source_counts < self._lake_counts
        found = {
            Difference.MISSING: int(more.sum()),
            Difference.EXTRA: int(fewer.sum()),
            Difference.CHANGED: int((~more & ~fewer).sum()),
        }
        return {difference: count for difference, count in found.items() if count}

    def first(self, keys_max: int) -> Iterator[KeyDifference]:
        """In the order of their keys."""
        _, places = np.unique(self._keys, return_index=True)
        shown = self._rows.select(list(dict.fromkeys(self._key))).take(pa.array(places))
        plain = [(name, "ascending") for name in shown.column_names if not is_nested(shown.schema.field(name).type)]
        order = np.arange(len(places))
        if plain:
            order = pc.sort_indices(shown, plain).to_numpy()
        for index in order[:keys_max]:
            texts = {name: _text(shown.column(name)[int(index)].as_py()) for name in self._key}
            yield self._difference(int(self._keys[places[index]]), texts)

    def _difference(self, number: int, key: dict[str, str | None]) -> KeyDifference:
        source_rows, lake_rows = int(self._source_counts[number]), int(self._lake_counts[number])
        if source_rows > lake_rows:
            return KeyDifference(key, Difference.MISSING, source_rows, lake_rows)
        if source_rows < lake_rows:
            return KeyDifference(key, Difference.EXTRA, source_rows, lake_rows)
        return KeyDifference(key, Difference.CHANGED, source_rows, lake_rows, self._changed(number))

    def _changed(self, number: int) -> tuple[str, ...]:
        """The columns whose values the sides do not have equally often."""
        chosen = np.flatnonzero(self._keys == number)
        rows, in_source = self._rows.take(pa.array(chosen)), self._in_source[chosen]
        names = []
        for name in rows.column_names:
            values, count = row_codes([_whole(rows, name)])
            if (_counts(values, in_source, count) != _counts(values, ~in_source, count)).any():
                names.append(name)
        return tuple(names)


def _key_numbers(rows: Any, key: Sequence[str]) -> tuple[Any, int]:
    columns = [_whole(rows, name) for name in key]
    if any(is_nested(column.type) for column in columns):
        return row_codes(columns)
    return key_codes(pa.StructArray.from_arrays(columns, [f"key{index}" for index in range(len(key))]))


def _counts(numbers: Any, chosen: Any, count: int) -> Any:
    return np.bincount(numbers[chosen], minlength=count)


def _whole(rows: Any, name: str) -> Any:
    """A column in one piece."""
    found = rows.column(name).combine_chunks()
    return found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)


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
