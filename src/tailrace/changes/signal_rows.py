"""Signals in the log's changes of a signal table: what was inserted into it, read as signals."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from tailrace.changes.decoding import Changes
from tailrace.changes.logged_table import touched_shape
from tailrace.changes.ordering import in_order
from tailrace.errors import DefiniteError
from tailrace.log.reader import LogReader
from tailrace.model.change import OP, POS, PREFIX, SEQ, Decode
from tailrace.model.signal import TABLE, Arrival, Signal, new_id
from tailrace.model.table import TableId

_WATERMARKS = ("snapshot-window-open", "snapshot-window-close")
"""What a Debezium that uses the same table writes there for itself."""


def arrivals_in(
    reader: LogReader, table: TableId, between: tuple[int, int], decode: Decode, relation: int
) -> list[tuple[int, Arrival]]:
    """The signals of transactions after < seq <= upto, each with its transaction's number, in commit order.

    What cannot be read, because the table was altered inside the range, is read in parts. A transaction that cannot be
    read alone is a rejected signal, never the end of the stream.
    """
    after, upto = between
    try:
        shape = touched_shape(reader, table, between, decode, relation)
        changes = Changes.of(reader, shape, between).table() if shape is not None else None
    except DefiniteError as error:
        if upto - after == 1:
            return [(upto, Arrival(Signal(new_id(), ""), TABLE, f"transaction {upto}: {error.message}"))]
        middle = (after + upto) // 2
        halves = (after, middle), (middle, upto)
        return [each for half in halves for each in arrivals_in(reader, table, half, decode, relation)]
    return _inserted(changes) if changes is not None else []


def _inserted(changes: pa.Table) -> list[tuple[int, Arrival]]:
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
