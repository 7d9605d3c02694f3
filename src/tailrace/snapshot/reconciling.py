"""A window's rows made into parts of a version, in tasks.

Rows that were read lie in files. A task takes some of them, decodes what the state that they were read under does not
show, replays it over them (`changes.reconcile`) and writes the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tailrace.changes.decoding import Changes
from tailrace.changes.reconcile import reconciled
from tailrace.changes.tail import Tail, touched_shape, unseen_tail
from tailrace.lake.door import WritePart
from tailrace.log.reader import LogReader
from tailrace.model.change import Decode, row_schema
from tailrace.model.exact import together
from tailrace.model.table import TableSchema
from tailrace.settings import TaskSizes
from tailrace.snapshot.windows import Staged, TableWindow, read_staged


@dataclass(frozen=True)
class Missed:
    """Changes that a window's rows do not show, or may not show. Travels."""

    changes: Changes
    seqs: np.ndarray
    bytes_max: int

    def tail(self) -> Tail | None:
        return unseen_tail(self.changes, self.seqs, self.bytes_max)


@dataclass(frozen=True)
class Reconciled:
    """What became of a portion."""

    parts: tuple[Any, ...]
    again: pa.Table | None
    """Keys that have to be read once more."""


@dataclass(frozen=True)
class Portion:
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

    def whole(self) -> Reconciled:
        """In a task."""
        tail = self.missed.tail() if self.missed else None
        if tail is not None and tail.truncated:
            return Reconciled((), None)
        rows = together([read_staged(each) for each in self.staged], row_schema(self.schema))
        states = tail.states if tail is not None else None
        found = reconciled(rows, states, self.schema, is_exact=self.is_exact, wanted=self.wanted)
        return Reconciled((self.write(found.states.to_batches()),), found.again)


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


def portions(
    window: TableWindow, missed: Missed | None, write: WritePart, portion_bytes: int, *, is_exact: bool
) -> tuple[Portion, ...]:
    """A window's chunks, neighbours together as long as they are smaller than this."""
    return tuple(
        Portion(str(window.schema.table), window.schema, tuple(each), missed, write, is_exact, window.again)
        for each in _together(window.staged, portion_bytes)
    )


def _together(staged: Sequence[Staged], portion_bytes: int) -> list[list[Staged]]:
    found: list[list[Staged]] = []
    room = 0
    for each in staged:
        if each.bytes > room:
            found.append([])
            room = portion_bytes
        found[-1].append(each)
        room -= each.bytes
    return found
