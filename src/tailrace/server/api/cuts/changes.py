"""What transactions have done to each table, as far as the log can tell it at a bounded cost.

The log's index has how many changes each transaction has, and which tables they are of, but not how many are of which
table. Where the records are few, they are counted one by one. Where they are many, the index tells which tables were
changed by how many transactions, and how many changes a table has that no transaction shares with another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from tailrace.lake.home import LakeHome
from tailrace.log.index.index import list_owners
from tailrace.log.playback.play import read
from tailrace.log.reader import LogReader
from tailrace.model.kind import Kind
from tailrace.server.api.cuts.models import ChangesInfo, HowCounted, TableChanges

COUNTED_BYTES_MAX = 32 << 20
"""Of the log, for one answer."""
RANGE_BYTES = 8 << 20
KINDS = (Kind.INSERT, Kind.UPDATE, Kind.DELETE, Kind.TRUNCATE)
BEYOND = "there are too many to count one by one: a table's changes are known where no transaction changed another"


def changes_between(home: LakeHome, after: int, upto: int, bytes_max: int = COUNTED_BYTES_MAX) -> ChangesInfo:
    """Of the transactions with after < seq <= upto."""
    reader = LogReader(home.log) if home.has_log else None
    lost = _why_gone(reader, after, upto)
    if reader is None or lost is not None:
        return _info(after, upto, HowCounted.GONE, lost)
    sums = IndexSums(reader, after, upto)
    names = {each.relation: str(table) for table, each in home.tables.load().items() if each.relation}
    if sums.bytes > bytes_max:
        return _info(after, upto, HowCounted.INDEX, BEYOND, sums, sums.tables(names))
    found = _counted(reader, after, upto)
    tables = [
        _table(names, relation, sums.transactions[relation], found.get(relation, Counter()))
        for relation in sums.transactions
    ]
    return _info(after, upto, HowCounted.LOG, None, sums, tables)


class IndexSums:
    """What the index has of a range of transactions."""

    def __init__(self, reader: LogReader, after: int, upto: int) -> None:
        self.changes = self.bytes = 0
        self.transactions: Counter[int] = Counter()
        self._alone: Counter[int] = Counter()
        self._shared: set[int] = set()
        for rows, lists in reader.portions(after, upto):
            owners, is_aborted = list_owners(rows)
            owners, relations = owners[~is_aborted], lists[~is_aborted]
            self.changes += int(rows["changes"].sum())
            self.bytes += int(rows["bytes"].sum())
            self.transactions.update(relations.tolist())
            is_alone = rows["relations"][owners] == 1
            self._shared.update(np.unique(relations[~is_alone]).tolist())
            pairs = zip(relations[is_alone].tolist(), rows["changes"][owners[is_alone]].tolist(), strict=True)
            for relation, changes in pairs:
                self._alone[relation] += changes

    def tables(self, names: Mapping[int, str]) -> list[TableChanges]:
        return [
            _table(names, relation, count, None, None if relation in self._shared else self._alone[relation])
            for relation, count in self.transactions.items()
        ]


def _why_gone(reader: LogReader | None, after: int, upto: int) -> str | None:
    if reader is None:
        return "the log is not on this machine"
    if upto > reader.head.seq:
        return f"the log ends at transaction {reader.head.seq:,}"
    if after < upto and after + 1 < reader.oldest_seq:
        return f"the log no longer has transactions before {reader.oldest_seq:,}"
    return None


def _counted(reader: LogReader, after: int, upto: int) -> dict[int, Counter[int]]:
    """For each table, how many changes of each kind were not taken back."""
    found: dict[int, Counter[int]] = {}
    for each in reader.ranges(after, upto, RANGE_BYTES):
        for batch in read(reader.path, each, after, upto, kinds=KINDS):
            pairs = np.stack([batch.column("relation").to_numpy(), batch.column("kind").to_numpy()], axis=1)
            values, counts = np.unique(pairs.astype(np.int64), axis=0, return_counts=True)
            for (relation, kind), count in zip(values.tolist(), counts.tolist(), strict=True):
                found.setdefault(relation, Counter())[kind] += count
    return found


def _table(
    names: Mapping[int, str],
    relation: int,
    transactions: int,
    kinds: Counter[int] | None,
    changes: int | None = None,
) -> TableChanges:
    counts = [None if kinds is None else kinds[kind] for kind in KINDS]
    return TableChanges(
        table=names.get(relation, f"a table that is not in the lake any more (number {relation})"),
        transactions=transactions,
        changes=changes if kinds is None else sum(kinds.values()),
        inserts=counts[0],
        updates=counts[1],
        deletes=counts[2],
        truncates=counts[3],
    )


def _info(
    after: int,
    upto: int,
    counted: HowCounted,
    note: str | None,
    sums: IndexSums | None = None,
    tables: list[TableChanges] | None = None,
) -> ChangesInfo:
    ordered = sorted(tables or [], key=lambda each: (-(each.changes or 0), -each.transactions, each.table))
    return ChangesInfo(
        after=after,
        upto=upto,
        transactions=max(0, upto - after),
        changes=None if sums is None else sums.changes,
        bytes=None if sums is None else sums.bytes,
        tables=ordered,
        counted=counted,
        note=note,
    )
