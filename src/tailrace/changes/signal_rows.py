"""Signals in the changes of a signal table: what was inserted into it, read as signals."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.changes.ordering import in_order
from tailrace.model.change import OP, POS, PREFIX, SEQ
from tailrace.model.signal import TABLE, Arrival, Signal, new_id

_WATERMARKS = ("snapshot-window-open", "snapshot-window-close")
"""What a Debezium that uses the same table writes there for itself."""


def arrivals_in(changes: pa.Table) -> list[tuple[int, Arrival]]:
    """The signals that changes of a signal table bring, each with its transaction's number, in commit order."""
    inserts = in_order(changes.filter(pc.equal(changes.column(OP), "c")), (SEQ, POS))
    names = [name for name in inserts.column_names if not name.startswith(PREFIX)][:3]
    columns = [_texts(inserts, name) for name in names]
    columns += [lambda _: ""] * (3 - len(columns))
    found = []
    for row, seq in enumerate(inserts.column(SEQ).to_pylist()):
        id_, type_, data = (column(row) for column in columns)
        if type_ not in _WATERMARKS:
            found.append((seq, Arrival(Signal(id_ or new_id(), type_, data), TABLE)))
    return found


def _texts(changes: pa.Table, name: str) -> Callable[[int], str]:
    """A column's values as text, without the spaces that `char(n)` adds; null is empty."""
    values = changes.column(name).to_pylist()
    return lambda row: "" if values[row] is None else str(values[row]).strip()
