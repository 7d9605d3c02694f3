"""Lists of an index row: which tables its transaction touched, and which of its sub-transactions aborted."""

from __future__ import annotations

import numpy as np

from tailrace.log.files.record import Array
from tailrace.log.ledger.runs import Runs


class RowLists:
    """The variable part of a batch's index rows: for each row its relations, then its aborted sub-transactions."""

    def __init__(self, runs: Runs, row_of_run: Array) -> None:
        self._parts: list[tuple[Array, int, Array]] = []
        for rank, pairs in enumerate((runs.relations, runs.aborted)):
            row = row_of_run[pairs.run]
            self._add(row[row >= 0], rank, pairs.value[row >= 0])

    def add(self, row: int, relations: set[int], aborted: list[Array]) -> None:
        """The row's whole transaction; what its last run said is part of it."""
        tables = np.fromiter(sorted(relations), dtype=np.uint64, count=len(relations))
        for rank, values in ((0, tables), (1, np.concatenate([*aborted, np.zeros(0, np.uint64)]))):
            self._add(np.full(len(values), row), rank, values)

    def fill(self, rows: Array) -> tuple[Array, Array]:
        """The rows with their counts, and all lists one after the other."""
        row, rank, value = self._in_order()
        counts = np.bincount(row, minlength=len(rows))
        rows["aborted"] = np.bincount(row[rank == 1], minlength=len(rows)) if rank.any() else 0
        rows["relations"] = counts - rows["aborted"]
        rows["lists_start"] = np.cumsum(counts) - counts
        return rows, value

    def _add(self, row: Array, rank: int, value: Array) -> None:
        if len(row):
            self._parts.append((row, rank, value))

    def _in_order(self) -> tuple[Array, Array, Array]:
        """Row, rank and value of every entry, each once."""
        if not self._parts:
            return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.uint64)
        row = np.concatenate([part[0] for part in self._parts])
        rank = np.repeat([part[1] for part in self._parts], [len(part[0]) for part in self._parts])
        value = np.concatenate([part[2] for part in self._parts])
        if len(self._parts) == 1 and (row[1:] >= row[:-1]).all():
            return row, rank, value
        order = np.lexsort((value, rank, row))
        row, rank, value = row[order], rank[order], value[order]
        fresh = np.ones(len(row), dtype=bool)
        fresh[1:] = (row[1:] != row[:-1]) | (rank[1:] != rank[:-1]) | (value[1:] != value[:-1])
        return row[fresh], rank[fresh], value[fresh]
