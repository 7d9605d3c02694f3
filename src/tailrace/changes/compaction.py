"""The last state of every key: the second half of compaction.

Many events in, at most one state a key out. Columns that the source left out because they had
not changed are filled from earlier events of the same key; what no event of the batch has stays
listed in `UNCHANGED` and is the base row's. A row that moved to another key takes its left-out
columns from where it came, and where that is a row of the base, `ORIGIN` names its key.

    events   k1 insert (a, big)   k1 update (a', -)   k2 update (b', -)   k3 insert, k3 delete
    states   k1 (a', big)         k2 (b', big from the base)              nothing: k3 never was

Publishing and live reads use this same function, so they cannot disagree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tailrace.changes.ordering import ordered
from tailrace.model.change import DELETED, FRESH, FROM, KEY, ORIGIN, PART, POS, SEQ, UNCHANGED
from tailrace.model.rows.exact import EXACT, exact_of, filled, with_exact
from tailrace.model.rows.key import key_codes


@dataclass(frozen=True)
class _OrderedEvents:
    """Events, and the order in which they happened: the n-th is row `order[n]`, and `groups[n]` numbers its key."""

    events: pa.Table
    order: np.ndarray
    groups: np.ndarray

    def taken(self, name: str, chosen: np.ndarray) -> Any:
        """One column of the chosen events; null for -1."""
        column = self.events.column(name)
        # More than 2 GB of text does not fit into one piece.
        column = column.chunk(0) if column.num_chunks == 1 else column
        is_none = chosen < 0
        if is_none.all():
            return pa.nulls(len(chosen), column.type)
        rows = self.order[chosen]
        return column.take(pa.array(rows, mask=is_none) if is_none.any() else pa.array(rows))


@dataclass
class _Sources:
    """For one column: which event gives its value after each event; -1 means the base row does."""

    row: np.ndarray
    origin: np.ndarray
    """Event whose `FROM` is the base row's key, where the row moved; -1 means its own key."""


def compact(events: pa.Table, columns: Sequence[str]) -> pa.Table:
    """One row a key: the table's columns, `EXACT` where a state has such a value, and `STATE_METADATA`.

    Events stay where they are: what is sorted is their numbers, and only rows that become states are gathered.
    """
    events = events.combine_chunks()
    order = ordered(events, (SEQ, POS, PART))
    codes, count = key_codes(events.column(KEY).combine_chunks())
    groups = codes[order]
    last = np.zeros(count, np.int64)
    last[groups] = np.arange(len(groups))
    first = np.zeros(count, np.int64)
    first[groups[::-1]] = np.arange(len(groups))[::-1]
    deleted = events.column(DELETED).to_numpy()[order]
    fresh = events.column(FRESH).to_numpy()[order]
    # A key that was not in the base and is gone again leaves no trace.
    kept = np.flatnonzero(~(fresh[first] & deleted[last]))
    last, first = last[kept], first[kept]
    states = _values(_OrderedEvents(events, order, groups), columns, last)
    return states.append_column(DELETED, pa.array(deleted[last])).append_column(FRESH, pa.array(fresh[first]))


def _values(found: _OrderedEvents, columns: Sequence[str], last: np.ndarray) -> pa.Table:
    left_out = _left_out(found, columns)
    key = found.events.column(KEY).combine_chunks().take(pa.array(found.order[last]))
    arrays: list[Any] = []
    unresolved = np.zeros((len(last), len(columns)), bool)
    origin = np.full(len(last), -1, np.int64)
    traced: dict[str, np.ndarray] = {}
    for index, name in enumerate(columns):
        in_key = key.type.get_field_index(name)
        if in_key >= 0:
            # A delete has its key here alone, and a key that the source left out has come from the old one.
            arrays.append(pc.struct_field(key, [in_key]))
            continue
        row = last
        if left_out is not None and left_out[:, index].any():
            sources = _trace(found, left_out[:, index])
            row = traced[name] = sources.row[last]
            unresolved[:, index] = row < 0
            origin = np.where(row < 0, sources.origin[last], origin)
        arrays.append(found.taken(name, row))
    table = with_exact(pa.table(arrays, names=list(columns)), _exact(found, last, traced))
    table = table.append_column(UNCHANGED, _name_lists(unresolved, columns))
    return table.append_column(ORIGIN, found.taken(FROM, origin))


def _exact(found: _OrderedEvents, last: np.ndarray, traced: Mapping[str, np.ndarray]) -> pa.Array | None:
    """What the states' columns cannot hold: of a column that was left out, from the event that gives its value."""
    maps = exact_of(found.events)
    if maps is None:
        return None
    own = found.taken(EXACT, last)
    places = {name: np.where(rows < 0, len(maps), found.order[rows]) for name, rows in traced.items()}
    # One row more than there are events: what the base gives is no event's.
    return filled(own, places, pa.concat_arrays([maps, pa.nulls(1, maps.type)]), len(last))


def _left_out(found: _OrderedEvents, columns: Sequence[str]) -> np.ndarray | None:
    """Rows by columns: True where the source left the value out; None where it left out none."""
    lists = found.events.column(UNCHANGED).combine_chunks()
    if lists.null_count == len(lists):
        return None
    mask = np.zeros((len(lists), len(columns)), bool)
    rows = pc.list_parent_indices(lists).to_numpy()
    names = pc.index_in(pc.list_flatten(lists), pa.array(columns, pa.string()))
    mask[rows, names.to_numpy(zero_copy_only=False).astype(np.int64)] = True
    in_order: np.ndarray = mask[found.order]
    return in_order


def _trace(found: _OrderedEvents, left_out: np.ndarray) -> _Sources:
    """Where one column's value comes from after each event.

    Within a key the newest event that carries the column gives it: a running maximum. A row that moved carries what
    its old key had before, so those are walked in order; each looks at one event.
    """
    groups = found.groups
    own = np.arange(len(groups))
    moved = left_out & found.events.column(FROM).is_valid().to_numpy()[found.order]
    carries = ~left_out | moved
    before = _newest_before(groups, carries)
    rows = np.where(left_out, -1, own)
    origin = np.full(len(groups), -1, np.int64)
    for event in np.flatnonzero(moved).tolist():
        # The move itself deleted the old key one event earlier; what counts is the state before that.
        source = before[event - 1]
        if source >= 0:
            rows[event], origin[event] = rows[source], origin[source]
        else:
            origin[event] = event
    source = np.where(carries, own, before)
    return _Sources(np.where(source >= 0, rows[source], -1), np.where(source >= 0, origin[source], -1))


def _newest_before(groups: np.ndarray, carries: np.ndarray) -> np.ndarray:
    """For each event the newest one before it that has the same key and carries; -1 where there is none."""
    order = np.argsort(groups, kind="stable")
    place = np.arange(len(groups))
    begins = np.diff(groups[order], prepend=-1) != 0
    first = np.maximum.accumulate(np.where(begins, place, 0))
    newest = np.maximum.accumulate(np.where(carries[order], place, -1))
    earlier = np.r_[-1, newest[:-1]] if len(place) else newest
    found = np.full(len(groups), -1, np.int64)
    found[order] = np.where(earlier >= first, order[earlier], -1)
    return found


def _name_lists(mask: np.ndarray, names: Sequence[str]) -> pa.Array:
    """Rows by columns of booleans as lists of names; null where a row has none."""
    if not mask.any():
        return pa.nulls(len(mask), pa.list_(pa.string()))
    counts = mask.sum(axis=1)
    offsets = pa.array(np.r_[0, np.cumsum(counts)].astype(np.int32))
    values = pa.array(list(names), pa.string()).take(pa.array(np.nonzero(mask)[1]))
    lists = pa.ListArray.from_arrays(offsets, values)
    return pc.if_else(pa.array(counts > 0), lists, pa.nulls(len(counts), lists.type))
