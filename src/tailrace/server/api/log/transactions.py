"""Transactions of a lake's log, the newest first, a page at a time: of all tables, or of one.

Read from the log's index alone. A search for one table looks through so much of it in a request, and says where to
continue.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.log.index.index import list_owners
from tailrace.log.reader import LogReader
from tailrace.model.position import SourcePosition
from tailrace.server.api.log.models import TABLES_SHOWN_MAX, TransactionInfo
from tailrace.server.errors import NotFoundError
from tailrace.server.moments import moment
from tailrace.source.kinds import codec_of

SEARCHED_MAX = 1 << 21
"""Transactions that one request looks through."""
PORTION = 1 << 16


@dataclass
class FoundTransactions:
    """A page, the newest first."""

    transactions: list[TransactionInfo]
    next: int | None
    """Where to look further."""


class LoggedTransactions:
    """Of one lake, for one request."""

    def __init__(self, home: LakeHome) -> None:
        """A `NotFoundError` where nothing is logged yet."""
        source = home.source()
        if source is None or not home.has_log:
            raise NotFoundError("nothing has been logged yet", "wait until the connector has reached its source")
        self.reader = LogReader(home.log)
        self.oldest, self.newest = self.reader.oldest_seq, self.reader.head.seq
        self.home = home
        self._kind = source.kind
        cut = home.cuts.newest()
        self._published = -1 if cut is None else cut.seq
        self._versions = self.reader.schemas()
        self._names = {each.relation: str(each.schema.table) for each in self._versions}

    @property
    def decode(self) -> Any:
        """The source's own."""
        return codec_of(self._kind).decode

    def formatted(self, position: SourcePosition) -> str:
        return codec_of(self._kind).format(position)

    def name_of(self, relation: int) -> str:
        return self._names.get(relation, f"table {relation}")

    def relations_of(self, table: str) -> frozenset[int]:
        """Every number under which the log has had a table of this name, `namespace.name` or `name`; none for one of
        the lake's that no transaction has touched."""
        named = {
            each.relation
            for each in self._versions
            if table == str(each.schema.table) or table == each.schema.table.name
        }
        if not named and not any(table in (str(each), each.name) for each in self.home.tables.load()):
            raise NotFoundError(f"neither the log nor the lake has a table {table[:200]}", "namespace.name, or name")
        return frozenset(named)

    def page(self, after: int, before: int | None, limit: int, relations: frozenset[int] | None) -> FoundTransactions:
        """Transactions with after < seq < before."""
        low = max(after, self.oldest - 1)
        high = self.newest if before is None else min(self.newest, before - 1)
        if relations is None:
            begin = max(low, high - limit)
            found = self._infos(range(high, begin, -1))
            return FoundTransactions(found, begin + 1 if begin > low else None)
        stop = max(low, high - SEARCHED_MAX)
        touching = list(islice(self._touching(stop, high, relations), limit + 1))
        found = self._infos(touching[:limit])
        if len(touching) > limit:
            return FoundTransactions(found, touching[limit - 1])
        return FoundTransactions(found, stop + 1 if stop > low else None)

    def one(self, seq: int) -> TransactionInfo:
        if not self.oldest <= seq <= self.newest:
            there = f"{self.oldest:,} to {self.newest:,}" if self.newest >= self.oldest else "none"
            raise NotFoundError(f"the log has no transaction {seq:,}", f"it holds {there}")
        return self._read(seq - 1, seq, None)[0]

    def _touching(self, after: int, upto: int, relations: frozenset[int]) -> Iterator[int]:
        wanted = np.array(sorted(relations), np.uint64)
        while upto > after:
            begin = max(after, upto - PORTION)
            # A portion may come in parts, in the order of commits.
            found: list[int] = []
            for rows, lists in self.reader.portions(begin, upto):
                owners, is_aborted = list_owners(rows)
                touches = np.unique(owners[~is_aborted & np.isin(lists, wanted)])
                found += rows["seq"][touches].tolist()
            yield from reversed(found)
            upto = begin

    def _infos(self, seqs: range | list[int]) -> list[TransactionInfo]:
        """Neighbours are read together."""
        found: list[TransactionInfo] = []
        for newest, oldest in _runs(seqs):
            found += reversed(self._read(oldest - 1, newest, TABLES_SHOWN_MAX))
        return found

    def _read(self, after: int, upto: int, tables_max: int | None) -> list[TransactionInfo]:
        try:
            rows = self.reader.transactions(after, upto).to_pylist()
        except DefiniteError as error:
            raise NotFoundError(error.message, error.hint) from None
        return [self._info(row, tables_max) for row in rows]

    def _info(self, row: dict[str, Any], tables_max: int | None) -> TransactionInfo:
        position = SourcePosition(row["commit_ordinal"], row["commit_time_us"], row["detail"])
        return TransactionInfo(
            seq=row["seq"],
            position=self.formatted(position),
            committed=moment(row["commit_time_us"]),
            xid=row["xid"],
            changes=row["changes"],
            bytes=row["bytes"],
            tables=sorted(self.name_of(each) for each in row["relations"][:tables_max]),
            tables_total=len(row["relations"]),
            is_streamed=row["streamed"],
            is_published=row["seq"] <= self._published,
        )


def _runs(seqs: range | list[int]) -> Iterator[tuple[int, int]]:
    """Neighbours among falling numbers: the first and the last of each run."""
    first = last = None
    for seq in seqs:
        if first is None or last is None:
            first = last = seq
        elif seq == last - 1:
            last = seq
        else:
            yield first, last
            first = last = seq
    if first is not None and last is not None:
        yield first, last
