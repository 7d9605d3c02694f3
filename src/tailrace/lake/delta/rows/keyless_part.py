"""One part of a version of a table without a key: counts of rows made into new rows and positions of old ones.

    locate   the rows that there are fewer of now; any of several equal ones will do
    prove    there are as many as went: else the lake is not the base that the counts were made for
    write    the rows that there are more of, each as often as its count says

Runs in this process or on an executor.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tailrace.lake.delta.rows.locator import Locator, Places
from tailrace.lake.delta.rows.part import Action, Part, RowsWriter, drifted, gone_at
from tailrace.model.change import COUNT
from tailrace.model.rows.exact import exact_of, with_exact
from tailrace.model.rows.row import repeated
from tailrace.model.table import TableSchema


@dataclass(frozen=True)
class CountsWriter:
    """Writes counts over a base; over nothing where `files` is None."""

    rows: RowsWriter
    schema: TableSchema
    locator: Locator
    files: tuple[Action, ...] | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Part:
        found = list(batches)
        if not found:
            return Part()
        counts = pa.Table.from_batches(found).combine_chunks()
        more = counts.column(COUNT).to_numpy()
        rows = with_exact(counts.select(list(self.schema.names)), exact_of(counts))
        gone = self._gone(rows.filter(pa.array(more < 0)), -more[more < 0])
        new = repeated(rows.filter(pa.array(more > 0)), more[more > 0])
        return replace(self.rows(new), gone=gone)

    def _gone(self, rows: pa.Table, wanted: np.ndarray) -> dict[str, bytes]:
        """As many positions of each row as are wanted."""
        if not rows.num_rows:
            return {}
        files = self.files or ()
        columns = [rows.column(name).combine_chunks() for name in self.schema.names]
        places = self.locator.find(columns, files, exact_of(rows))
        present = places.counts(rows.num_rows)
        if (present < wanted).any():
            wrong = {"is missing": present == 0, "is there too few times": (present > 0) & (present < wanted)}
            raise drifted(self.schema, rows, wrong)
        return gone_at(_first(places, wanted), files)


def _first(places: Places, wanted: np.ndarray) -> Places:
    """The first places of each row, as many as are wanted of it."""
    order = np.argsort(places.which, kind="stable")
    which = places.which[order]
    rank = np.arange(len(which)) - which.searchsorted(which)
    chosen = order[rank < wanted[which]]
    return Places(places.which[chosen], places.file[chosen], places.position[chosen])
