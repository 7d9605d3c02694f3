"""Tail: one table's changes in a range of transactions, compacted.

Publishing and live reads both start here, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.changes.decoding import Changes
from tailrace.changes.ordering import in_order
from tailrace.changes.shape import TableShape
from tailrace.changes.states import events_of, states_of
from tailrace.errors import DefiniteError, TransientError
from tailrace.log.reader import LogReader
from tailrace.model.change import FRESH, OP, POS, SEQ
from tailrace.model.following import typed_like
from tailrace.model.table import Column

TAIL_BYTES_MAX = 480 << 20
"""Of decoded changes that a live read lays over a table."""


class Tail:
    """The compacted changes of one table.

    A key that came and went among the changes leaves no state. It does with `keeps_gone`: then the rows that the
    states are laid over may show some of the changes already, and such a key.
    """

    def __init__(self, shape: TableShape, changes: pa.Table, *, keeps_gone: bool = False) -> None:
        self.shape = shape
        self.schema = shape.target
        changes = in_order(changes, (SEQ, POS))
        truncates = pc.indices_nonzero(pc.equal(changes.column(OP), "t"))
        self.truncated = len(truncates) > 0
        """The base's rows are gone; the states are all there is."""
        if self.truncated:
            changes = changes.slice(truncates[-1].as_py() + 1)
        found = events_of(changes, self.schema)
        if keeps_gone:
            is_fresh = pa.array(np.zeros(found.num_rows, bool))
            found = found.set_column(found.schema.get_field_index(FRESH), FRESH, is_fresh)
        self.states = states_of(found, self.schema)


def read_tail(
    reader: LogReader, shape: TableShape, between: tuple[int, int], present: Sequence[Column], bytes_max: int
) -> Tail | None:
    """A table's compacted changes of transactions after < seq <= upto; None if there are none. They are typed as the
    columns that are present. A definite error if they take more than `bytes_max`."""
    shape = replace(shape, target=typed_like(shape.target, present))
    changes = Changes.of(reader, shape, between).table(bytes_max)
    if changes is None:
        hint = "wait until a running sync has published them, or read the published cut: tailrace query --published"
        table = str(shape.target.table)
        raise DefiniteError(f"table {table} has more unpublished changes than a live read can take", hint, table)
    return Tail(shape, changes) if changes.num_rows else None


def unseen_tail(changes: Changes, seqs: np.ndarray, bytes_max: float) -> Tail | None:
    """The changes of some transactions only, those that rows read in this shape do not show, or may not show; None if
    there are none. In a task.

    A transient error if they would take more than `bytes_max`: a later state of the source shows more of them.
    """
    decoded = changes.table(bytes_max, seqs)
    if decoded is None:
        table = changes.shape.target.table
        raise TransientError(f"{table}: too much was committed while rows of it were read", table=str(table))
    return Tail(changes.shape, decoded, keeps_gone=True) if decoded.num_rows else None
