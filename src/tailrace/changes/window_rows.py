"""A window's rows made into parts of a version, in tasks.

Rows that were read lie in files. A task takes some of them, decodes what the state that they were read under does not
show, replays it over them (`changes.reconcile`) and writes the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from tailrace.changes.decoding import Changes
from tailrace.changes.logged_table import touched_shape
from tailrace.changes.reconcile import reconciled
from tailrace.changes.tail import Tail, unseen_tail
from tailrace.log.reader import LogReader
from tailrace.model.change import Decode, row_schema
from tailrace.model.rows.exact import EXACT, EXACT_TYPE, exact_of, padded, together, with_exact
from tailrace.model.table import TableSchema
from tailrace.settings import TaskSizes

WritePart = Callable[[Iterable[pa.RecordBatch]], Any]
"""The lake's: writes one part of a version. Nothing of it counts before the commit."""


@dataclass(frozen=True)
class Staged:
    """Rows of a chunk in a file; all of them, if they are not too many."""

    path: Path
    rows: int
    bytes: int


@dataclass(frozen=True)
class Missed:
    """Changes that a window's rows do not show, or may not show. Travels."""

    changes: Changes
    seqs: np.ndarray
    bytes_max: int

    def tail(self) -> Tail | None:
        return unseen_tail(self.changes, self.seqs, self.bytes_max)


@dataclass(frozen=True)
class ReconciledPortion:
    """What became of a portion."""

    parts: tuple[Any, ...]
    again: pa.Table | None
    """Keys that have to be read once more."""


@dataclass(frozen=True)
class WindowPortion:
    """Some chunks of a window, and what is to be done with them. Travels."""

    table: str
    schema: TableSchema
    staged: tuple[Staged, ...]
    missed: Missed | None
    write: WritePart
    is_exact: bool
    wanted: pa.Table | None
    """The keys that were read again, if that is what was read."""

    @property
    def bytes(self) -> int:
        return sum(each.bytes for each in self.staged)

    def whole(self) -> ReconciledPortion:
        """In a task."""
        tail = self.missed.tail() if self.missed else None
        if tail is not None and tail.truncated:
            return ReconciledPortion((), None)
        rows = together([read_staged(each) for each in self.staged], row_schema(self.schema))
        states = tail.states if tail is not None else None
        found = reconciled(rows, states, self.schema, is_exact=self.is_exact, wanted=self.wanted)
        return ReconciledPortion((self.write(found.states.to_batches()),), found.again)


def unseen_changes(
    reader: LogReader, schema: TableSchema, seqs: np.ndarray, decode: Decode, sizes: TaskSizes
) -> Missed | None:
    """The changes of some transactions to one table; None if there are none."""
    if not len(seqs):
        return None
    between = int(seqs.min()) - 1, int(seqs.max())
    shape = touched_shape(reader, schema.table, between, decode, schema.relation)
    if shape is None:
        return None
    shape = replace(shape, target=schema)
    return Missed(Changes.of(reader, shape, between, sizes.read_bytes), seqs, sizes.decoded_bytes_max)


def write_staged(path: Path, schema: TableSchema, batches: Iterator[pa.RecordBatch], piece_bytes: int) -> Staged:
    """The first of the batches, as many as are reconciled in one piece."""
    rows = size = 0
    shape = row_schema(schema).append(pa.field(EXACT, EXACT_TYPE))
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, shape) as writer:
        for batch in batches:
            writer.write_batch(padded(batch))
            rows, size = rows + batch.num_rows, size + batch.nbytes
            if size >= piece_bytes:
                break
    return Staged(path, rows, size)


def read_staged(staged: Staged) -> pa.Table:
    """The rows of a chunk."""
    with pa.memory_map(str(staged.path)) as source:
        rows = pa.ipc.open_file(source).read_all()
    return with_exact(rows, exact_of(rows))
