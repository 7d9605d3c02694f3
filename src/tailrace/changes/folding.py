"""One table's changes in a range of transactions, made into parts of a version. All of it runs in tasks.

    whole     decode ─ events ─ compact ─ write                      in one task
    dealt     a part of the range: decode ─ events ─ split by key ─┬─ every key's events meet in one task
    gathered                                                       └─ compact ─ write

Rows do not travel as rows: a task hands on one Arrow blob for each task after it. Of a table without a key, equal rows
meet instead; they have been counted before they travel.

A row that changed its key and left columns out takes them from events of its old key, so the two keys must meet. What
came before a truncate must not count, whichever task has it. Where a range has either, `dealt` says so, the range is
looked through first (`looked_at`), and dealt again with what was found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.changes.decoding import Changes
from tailrace.changes.states import events_of, states_of
from tailrace.changes.tail import Tail
from tailrace.errors import TransientError
from tailrace.log.playback.ranges import ByteRange
from tailrace.model.change import FROM, KEY, OP, POS, SEQ
from tailrace.model.rows.codes import key_codes, tasks_of
from tailrace.model.rows.exact import exact_of, together
from tailrace.model.table import TableSchema

Place = tuple[int, int]
"""Transaction and position of a change."""


class LookFirstError(TransientError):
    """The range has rows that moved, or truncates."""


@dataclass(frozen=True)
class Writers:
    """How states become a part of a version: laid over what the table has, or in its place."""

    over: Callable[[Iterable[pa.RecordBatch]], Any]
    alone: Callable[[Iterable[pa.RecordBatch]], Any]


@dataclass(frozen=True)
class Folded:
    """What became of changes."""

    parts: tuple[Any, ...] = ()
    states: int = 0
    """How many keys have another state now."""
    is_truncated: bool = False
    """The table's old rows are gone."""

    @property
    def is_nothing(self) -> bool:
        return not self.states and not self.is_truncated


def whole(changes: Changes, writers: Writers, bytes_max: int) -> Folded | None:
    """All of the range in this task; None if its changes take more than this, decoded."""
    decoded = changes.table(bytes_max)
    if decoded is None:
        return None
    tail = Tail(changes.shape, decoded)
    del decoded
    if not tail.truncated and not tail.states.num_rows:
        return Folded()
    write = writers.alone if tail.truncated else writers.over
    return Folded((write(tail.states.to_batches()),), tail.states.num_rows, tail.truncated)


@dataclass(frozen=True)
class Look:
    """What must be known of a range before it is dealt out."""

    truncate: Place | None = None
    """The last one."""
    codes: np.ndarray | None = None
    """Keys that must go to the task of another, sorted."""
    instead: np.ndarray | None = None
    """The code that counts instead of each."""

    def targets(self, codes: np.ndarray, tasks: int) -> np.ndarray:
        """The task of each key."""
        if self.codes is not None and self.instead is not None and len(self.codes):
            places = np.minimum(self.codes.searchsorted(codes), len(self.codes) - 1)
            codes = np.where(self.codes[places] == codes, self.instead[places], codes)
        return tasks_of(codes, tasks)


def dealt(changes: Changes, tasks: int, look: Look | None, part: ByteRange) -> Iterator[tuple[int, bytes]]:
    """The events of a part of the range, for the task that each belongs to. `LookFirstError` if that cannot be told
    without a look at the whole range."""
    schema = changes.shape.target
    for batch in changes.decoded([part]):
        table = pa.Table.from_batches([batch])
        if look is None and pc.any(pc.equal(batch.column(OP), "t")).as_py():
            raise LookFirstError("truncated")
        found = events_of(_after(table, look.truncate if look else None), schema)
        if look is None and schema.key and found.column(FROM).null_count < found.num_rows:
            raise LookFirstError("moved rows")
        codes = _codes(found.column(KEY)) if schema.key else _row_codes(found, schema)
        yield from _blobs(found, (look or Look()).targets(codes, tasks), tasks)


def gathered(schema: TableSchema, writers: Writers, look: Look | None, blobs: Iterable[bytes]) -> Folded:
    """What becomes of the events that were dealt to this task."""
    tables = [pa.ipc.open_stream(pa.py_buffer(blob)).read_all() for blob in blobs]
    if not tables:
        return Folded()
    states = states_of(together(tables, tables[0].schema), schema)
    del tables
    if not states.num_rows:
        return Folded()
    is_truncated = look is not None and look.truncate is not None
    write = writers.alone if is_truncated else writers.over
    return Folded((write(states.to_batches()),), states.num_rows, is_truncated)


def joined(found: Sequence[Folded], look: Look | None) -> Folded:
    """What became of the whole range."""
    parts = tuple(part for each in found for part in each.parts)
    return Folded(parts, sum(each.states for each in found), look is not None and look.truncate is not None)


@dataclass(frozen=True)
class Seen:
    """What a look at a part of a range found."""

    truncate: Place | None
    old: np.ndarray
    new: np.ndarray
    """Codes of the keys that rows moved from and to."""


def looked_at(changes: Changes, part: ByteRange) -> Seen:
    truncates: list[Place] = []
    old, new = [np.empty(0, np.uint64)], [np.empty(0, np.uint64)]
    schema = changes.shape.target
    for batch in changes.decoded([part]):
        gone = batch.filter(pc.equal(batch.column(OP), "t"))
        truncates += zip(gone.column(SEQ).to_pylist(), gone.column(POS).to_pylist(), strict=True)
        if schema.key:
            found = events_of(pa.Table.from_batches([batch]), schema)
            moved = found.filter(found.column(FROM).is_valid())
            if moved.num_rows:
                old.append(_codes(moved.column(FROM)))
                new.append(_codes(moved.column(KEY)))
    return Seen(max(truncates, default=None), np.concatenate(old), np.concatenate(new))


def look_of(seen: Sequence[Seen]) -> Look:
    """Keys that moves join, however long the chain, go where the smallest code among them goes.

    So a chain is compacted in one task, in 0.6 KB of memory for each of its rows. Only rows that left large values out
    count, and only a statement that gives rows the keys of others makes a long one: `set id = id + 1`.
    """
    truncate = max((each.truncate for each in seen if each.truncate), default=None)
    old, new = (np.concatenate([getattr(each, name) for each in seen]) for name in ("old", "new"))
    codes, places = np.unique(np.r_[old, new], return_inverse=True)
    one, other = np.split(places, 2)
    smallest = np.arange(len(codes))
    while True:
        lower = np.minimum(smallest[one], smallest[other])
        before = smallest.copy()
        np.minimum.at(smallest, one, lower)
        np.minimum.at(smallest, other, lower)
        # Pointer jumping: each round halves the chains.
        smallest = smallest[smallest]
        if (smallest == before).all():
            return Look(truncate, codes, codes[smallest])


def _blobs(found: pa.Table, targets: np.ndarray, tasks: int) -> Iterator[tuple[int, bytes]]:
    order = np.argsort(targets, kind="stable")
    ordered = found.take(pa.array(order)).combine_chunks()
    ends = np.cumsum(np.bincount(targets.astype(np.int64), minlength=tasks))
    for task, (begin, end) in enumerate(zip(np.r_[0, ends[:-1]].tolist(), ends.tolist(), strict=True)):
        if end > begin:
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, ordered.schema) as writer:
                writer.write_table(ordered.slice(begin, end - begin))
            yield task, sink.getvalue().to_pybytes()


def _codes(keys: pa.ChunkedArray) -> np.ndarray:
    key = keys.combine_chunks()
    return key_codes([pc.struct_field(key, [index]) for index in range(key.type.num_fields)]).first


def _row_codes(rows: pa.Table, schema: TableSchema) -> np.ndarray:
    columns = [rows.column(name).combine_chunks() for name in schema.names]
    return key_codes(columns, whole_rows=True, exact=exact_of(rows)).first


def _after(changes: pa.Table, truncate: Place | None) -> pa.Table:
    if truncate is None:
        return changes
    seq, position = truncate
    in_later = pc.greater(changes.column(SEQ), seq)
    later_in_same = pc.and_(pc.equal(changes.column(SEQ), seq), pc.greater(changes.column(POS), position))
    return changes.filter(pc.or_(in_later, later_in_same))
