"""One part of a version: some compacted states made into files of new rows and positions of old ones.

    locate   where the states' keys lie
    prove    a key that is new must lie nowhere, any other at one place: else the lake is not the states' base
    fill     columns that the source left out, from the old rows
    write    the new rows: in one file, or in several where more is filled in than memory should hold

Runs in this process or on an executor.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.errors import ResyncError
from tailrace.lake.delta.file_names import name_of
from tailrace.lake.delta.metadata import Field
from tailrace.lake.delta.rows._unsent_columns import OldRows
from tailrace.lake.delta.rows.deletion_vectors import vector_at
from tailrace.lake.delta.rows.locator import Locator, Places
from tailrace.lake.delta.rows.row_files import SIZES, RowSizes, write_rows
from tailrace.model.change import DELETED, FRESH, ORIGIN, UNCHANGED
from tailrace.model.rows.exact import EXACT, exact_of, with_exact
from tailrace.model.table import TableSchema
from tailrace.storage.door import Storage

SHOWN_KEYS = 3
SHOWN_LETTERS_MAX = 40

Action = Mapping[str, Any]


@dataclass(frozen=True)
class Part:
    """What one writer contributes to a version."""

    added: tuple[Action, ...] = ()
    gone: Mapping[str, bytes] = field(default_factory=dict)
    """Rows that no longer count, by the path of their file: a serialized deletion vector."""
    again: pa.Table | None = None
    """Keys that have to be read again."""
    has_exact: bool = False
    """Some of its rows have values that their columns cannot hold: the table needs the column for those."""


@dataclass(frozen=True)
class RowsWriter:
    """Writes rows as they come. From the first one on that needs the column `exact`, into another file."""

    table: Storage
    fields: tuple[Field, ...]
    exact: Field
    sizes: RowSizes = SIZES

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Part:
        coming, odd = iter(batches), list[pa.RecordBatch]()

        def plain() -> Iterator[pa.RecordBatch]:
            for batch in coming:
                if exact_of(batch) is not None:
                    odd.append(batch)
                    return
                yield batch

        added = write_rows(self.table, plain(), self.fields, self.sizes)
        if not odd:
            return Part((added,) if added else ())
        rest = (self._with_lake_names(batch) for batch in itertools.chain(odd, coming))
        also = write_rows(self.table, rest, (*self.fields, self.exact), self.sizes)
        return Part(tuple(each for each in (added, also) if each), has_exact=True)

    def _with_lake_names(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.rename_columns([self.exact.name if name == EXACT else name for name in batch.schema.names])


@dataclass(frozen=True)
class StatesWriter:
    """Writes states over a base; over nothing where `files` is None."""

    rows: RowsWriter
    schema: TableSchema
    locator: Locator
    files: tuple[Action, ...] | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Part:
        states = pa.Table.from_batches(batches).combine_chunks() if (batches := list(batches)) else None
        if states is None or not states.num_rows:
            return Part()
        if self.files is None:
            return self._write(states)
        places = self._find(states, self.schema.key)
        states, again = self._fitting(states, places)
        written = self._write_all(self._complete(states, places))
        added = tuple(add for part in written for add in part.added)
        has_exact = any(part.has_exact for part in written)
        return Part(added, gone_at(places, self.files), again, has_exact)

    def _find(self, rows: pa.Table, key: Sequence[str]) -> Places:
        assert self.files is not None
        return self.locator.find([rows.column(name).combine_chunks() for name in key], self.files)

    def _fitting(self, states: pa.Table, places: Places) -> tuple[pa.Table, pa.Table | None]:
        """The states as they can be laid over the base, and keys that have to be read again."""
        self._prove(states, places)
        return states, None

    def _prove(self, states: pa.Table, places: Places) -> None:
        counts = places.counts(states.num_rows)
        fresh = states.column(FRESH).to_numpy()
        wrong = {
            "is there already": fresh & (counts > 0),
            "is missing": ~fresh & (counts == 0),
            "is there more than once": ~fresh & (counts > 1),
        }
        if any(rows.any() for rows in wrong.values()):
            raise drifted(self.schema, states, wrong)

    def _complete(self, states: pa.Table, places: Places) -> Iterator[pa.Table]:
        """With the columns that were left out, a part of the states after another. A row that moved has them under its
        old key."""
        partial = states.column(UNCHANGED).is_valid().to_numpy()
        if not partial.any():
            yield states
            return
        # Each key has at most one place by now.
        where = np.full(states.num_rows, -1)
        where[places.which] = np.arange(len(places.which))
        files, positions = _at(places, where)
        origins = states.column(ORIGIN).combine_chunks()
        moved = origins.is_valid().to_numpy(zero_copy_only=False) & partial
        if moved.any():
            old = pa.Table.from_struct_array(origins.filter(pa.array(moved)))
            from_old = self._find(old, self.schema.key)
            self._prove(_as_known(old), from_old)
            which = np.flatnonzero(moved)[from_old.which]
            files[which], positions[which] = from_old.file, from_old.position
        assert self.files is not None
        rows = self.rows
        names = [name_of(rows.table, add["path"]) for add in self.files]
        old_rows = OldRows(rows.table, names, files, positions, rows.sizes.filled_bytes_max)
        yield from old_rows.filled(states, partial, rows.fields, rows.exact)

    def _write_all(self, complete: Iterable[pa.Table]) -> list[Part]:
        written: list[Part] = []
        try:
            for states in complete:
                written.append(self._write(states))
        except BaseException:
            table = self.rows.table
            table.delete(name_of(table, add["path"]) for part in written for add in part.added)
            raise
        return written

    def _write(self, states: pa.Table) -> Part:
        chosen = self._in_order(states, np.flatnonzero(~states.column(DELETED).to_numpy()))
        rows = with_exact(states.select(list(self.schema.names)), exact_of(states)).take(pa.array(chosen))
        return self.rows(rows.to_batches())

    def _in_order(self, states: pa.Table, chosen: np.ndarray) -> np.ndarray:
        """Some rows by their key."""
        key = self.schema.key
        if not key:
            return chosen
        keys = states.select(list(key)).take(pa.array(chosen))
        first = keys.column(0)
        if len(key) == 1 and pa.types.is_integer(first.type) and (np.diff(first.to_numpy()) > 0).all():
            return chosen
        by_key: np.ndarray = chosen[pc.sort_indices(keys, [(name, "ascending") for name in key]).to_numpy()]
        return by_key


def drifted(schema: TableSchema, rows: pa.Table, wrong: Mapping[str, np.ndarray]) -> ResyncError:
    """The lake is not what the states were made for; names the rows and what is wrong with each."""
    names = list(schema.key or schema.names)
    found = []
    for what, chosen in wrong.items():
        keys = rows.select(names).filter(pa.array(chosen))
        if keys.num_rows:
            shown = [", ".join(map(_short, row.values())) for row in keys.slice(0, SHOWN_KEYS).to_pylist()]
            more = f" and {keys.num_rows - SHOWN_KEYS} more" if keys.num_rows > SHOWN_KEYS else ""
            found.append(f"row {' / '.join(shown)}{more} {what}")
    return ResyncError.of(schema.table, f"the lake had drifted from the source: {'; '.join(found)}")


def _short(value: Any) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= SHOWN_LETTERS_MAX else f"{text[:SHOWN_LETTERS_MAX]}…"


def gone_at(places: Places, files: Sequence[Action]) -> dict[str, bytes]:
    """Deletion vectors of these places, by the path of their file."""
    return {
        files[number]["path"]: vector_at(places.position[places.file == number]).serialize()
        for number in np.unique(places.file).tolist()
    }


def _at(places: Places, where: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    known = where >= 0
    files, positions = np.full(len(where), -1), np.full(len(where), -1)
    files[known], positions[known] = places.file[where[known]], places.position[where[known]]
    return files, positions


def _as_known(keys: pa.Table) -> pa.Table:
    return keys.append_column(FRESH, pa.array(np.zeros(keys.num_rows, bool)))
