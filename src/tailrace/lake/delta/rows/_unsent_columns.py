"""Columns that the source left out of states, taken from the old rows.

What is left out is large: a small batch of states may stand for any amount of it. So old rows are read a group of their
file at a time, in the order in which they lie, and states are completed in parts of about `filled_bytes_max`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.lake.delta.metadata import Field
from tailrace.lake.delta.rows.row_files import read_at
from tailrace.model.change import UNCHANGED
from tailrace.model.rows.exact import exact_of, filled, with_exact
from tailrace.model.rows.lake_types import is_limited
from tailrace.model.rows.nested import replaced
from tailrace.storage.door import Storage


@dataclass(frozen=True)
class OldRows:
    """Where the old row of each state lies: the number of its file, and its position there; -1 where it has none."""

    table: Storage
    names: Sequence[str]
    files: np.ndarray
    positions: np.ndarray
    filled_bytes_max: int

    def filled(
        self, states: pa.Table, partial: np.ndarray, fields: Sequence[Field], exact: Field
    ) -> Iterator[pa.Table]:
        """The states with all columns, in one table or in several. Those that are not `partial` come first."""
        names = set(pc.unique(pc.list_flatten(states.column(UNCHANGED).combine_chunks())).to_pylist())
        wanted = [field for field in fields if field.name in names]
        if any(is_limited(field.type) for field in wanted):
            wanted.append(exact)
        rows, old, weight = [np.flatnonzero(~partial)], list[pa.Table](), 0
        for chosen, found in self._read(np.flatnonzero(partial), wanted):
            rows.append(chosen)
            old.append(found)
            weight += found.nbytes
            if weight >= self.filled_bytes_max:
                yield _completed(states, rows, old, exact)
                rows, old, weight = [rows[0][:0]], [], 0
        if old:
            yield _completed(states, rows, old, exact)

    def _read(self, rows: np.ndarray, wanted: Sequence[Field]) -> Iterator[tuple[np.ndarray, pa.Table]]:
        """Some of the rows and what they were, until all have come."""
        for number in np.unique(self.files[rows]).tolist():
            of_file = rows[self.files[rows] == number]
            of_file = of_file[np.argsort(self.positions[of_file], kind="stable")]
            for which, found in read_at(self.table, self.names[number], wanted, self.positions[of_file]):
                yield of_file[which], found


def _completed(states: pa.Table, rows: Sequence[np.ndarray], old: Sequence[pa.Table], exact: Field) -> pa.Table:
    """The states of some rows: the first of `rows` are whole, and `old` has the old ones of all others, in order."""
    before, whole = pa.concat_tables(old).combine_chunks(), len(rows[0])
    found = states.take(pa.array(np.concatenate(rows))).combine_chunks()
    left_out = found.column(UNCHANGED).combine_chunks()
    names, parents = pc.list_flatten(left_out), pc.list_parent_indices(left_out)
    places = {}
    for name in pc.unique(names).to_pylist():
        wants = np.zeros(found.num_rows, bool)
        wants[parents.filter(pc.equal(names, name))] = True
        values = before.column(name).take(pa.array(np.flatnonzero(wants) - whole)).combine_chunks()
        index = found.schema.get_field_index(name)
        found = found.set_column(index, name, replaced(found.column(index).combine_chunks(), wants, values))
        places[name] = np.where(wants, np.arange(found.num_rows) - whole, -1)
    if exact.name not in before.column_names:
        return found
    maps = before.column(exact.name).combine_chunks()
    return with_exact(found, filled(exact_of(found), places, maps, found.num_rows))
