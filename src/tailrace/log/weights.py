"""How much of the log is whose, from the index alone: about how many bytes transactions have, and of which tables.

Pure: portions of the index in (`LogReader.portions`), numbers out. Weights are what was logged, before aborted
sub-transactions and undone changes are taken off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from tailrace.log.files.record import Array
from tailrace.log.index.index import list_owners

Portions = Iterable[tuple[Array, Array]]
"""Rows of the index with their lists."""


def relations_in(portions: Portions) -> set[int]:
    """The tables that these transactions touched."""
    relations: set[int] = set()
    for rows, lists in portions:
        relations.update(np.unique(lists[~list_owners(rows)[1]]).tolist())
    return relations


def first_of(relation: int, portions: Portions) -> int | None:
    """The first of these transactions that touched a table."""
    for rows, lists in portions:
        owners, is_aborted = list_owners(rows)
        touching = owners[~is_aborted][lists[~is_aborted] == relation]
        if len(touching):
            return int(rows["seq"][touching[0]])
    return None


def weigh_tables(starts: Mapping[int, int], portions: Portions) -> dict[int, int]:
    """About how many bytes each table has, of transactions after that of its start.

    Tables that they do not touch are left out. A transaction that touches several is shared out evenly.
    """
    weights: dict[int, float] = {}
    wanted = np.array(sorted(starts), np.uint64)
    after = np.array([starts[int(relation)] for relation in wanted], np.int64)
    for rows, lists in portions:
        owners, is_aborted = list_owners(rows)
        owner, relation = owners[~is_aborted], lists[~is_aborted]
        place = np.minimum(wanted.searchsorted(relation), len(wanted) - 1)
        chosen = (wanted[place] == relation) & (rows["seq"][owner] > after[place])
        shares = (rows["bytes"] / np.maximum(1, rows["relations"]))[owner[chosen]]
        totals = np.bincount(place[chosen], weights=shares, minlength=len(wanted))
        counts = np.bincount(place[chosen], minlength=len(wanted))
        for number in np.flatnonzero(counts).tolist():
            weights[int(wanted[number])] = weights.get(int(wanted[number]), 0.0) + float(totals[number])
    return {relation: int(weight) for relation, weight in weights.items()}


def weigh(portions: Portions) -> int:
    return sum(int(rows["bytes"].sum()) for rows, _ in portions)


def last_within(bytes_max: int, portions: Portions) -> int:
    """The last of these transactions such that all up to it weigh about `bytes_max`; 0 where the first weighs more."""
    room, upto = bytes_max, 0
    for rows, _ in portions:
        weights = np.cumsum(rows["bytes"])
        fitting = int(np.searchsorted(weights, room, side="right"))
        upto = int(rows["seq"][0]) - 1 + fitting if fitting else upto
        if fitting < len(rows):
            break
        room -= int(weights[-1])
    return upto
