"""What a source showed after each of its commits: the record that reads of a lake are judged by.

One writer commits one transaction after another, so the history is a line, and the record after each commit is exact.
Positions of the server's log lie like this:

    ... ended | begun ... commit record ... ended | begun ...
      commit 6            commit 7                 commit 8

A cut that has the position of a commit in the log is that commit. Any other position is a copy's point, or a repaired
gap, which the log has too: between two commits it is the earlier one, inside one (`begun` to `ended`) a point may be
either.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property

import psycopg
import pyarrow as pa
from demo.compare import lake_rows
from psycopg import sql

_OUTPUT = "-c timezone=UTC -c datestyle=ISO -c search_path={}"
_TABLES = """
select n.nspname, c.relname, c.relkind = 'p', c.oid::bigint,
       array_agg(a.attnum order by a.attnum), array_agg(a.attname::text order by a.attnum)
from pg_class c
join pg_namespace n on n.oid = c.relnamespace
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
where c.relkind in ('r', 'p') and not c.relispartition and n.nspname = any(%s)
group by n.nspname, c.relname, c.relkind, c.oid
"""
_TEXT = "case when num_nulls({0}) = 0 then format('%s', {0}) end"


@dataclass(frozen=True)
class State:
    """A table's columns and rows. Rows are multisets of texts, as the source writes them, in the order of the columns'
    names."""

    columns: tuple[str, ...]
    rows: frozenset[tuple[tuple[object, ...], int]]

    @classmethod
    def of(cls, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> State:
        order = sorted(range(len(columns)), key=columns.__getitem__)
        counted = Counter(tuple(row[place] for place in order) for row in rows)
        return cls(tuple(columns[place] for place in order), frozenset(counted.items()))

    @classmethod
    def in_lake(cls, rows: pa.Table) -> State:
        names = [each.name for each in rows.schema if not pa.types.is_map(each.type)]
        return cls.of(names, lake_rows(rows))

    def __str__(self) -> str:
        rows = sorted(map(repr, Counter(dict(self.rows)).elements()))
        return f"{','.join(self.columns)}: {' '.join(rows)[:600]}"


@dataclass(frozen=True)
class Recorded:
    """A table as the source showed it from one commit on."""

    relation: int
    numbers: tuple[int, ...]
    """Of its columns, in the catalog: a renamed column keeps its own."""
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    @cached_property
    def state(self) -> State:
        return State.of(self.columns, self.rows)

    def has_values_of(self, before: Recorded) -> bool:
        """Whether what led here changed no value: columns may have been renamed or dropped, or added and are null. No
        name may stand for another column now."""
        added = [place for place, number in enumerate(self.numbers) if number not in before.numbers]
        names = dict(zip(before.columns, before.numbers, strict=True))
        return (
            self.relation == before.relation
            and all(names.get(name, number) == number for name, number in zip(self.columns, self.numbers, strict=True))
            and self._values(before.numbers) == before._values(self.numbers)
            and all(row[place] is None for row in self.rows for place in added)
        )

    def _values(self, numbers: Sequence[int]) -> Counter[tuple[object, ...]]:
        places = [place for place, number in enumerate(self.numbers) if number in numbers]
        return Counter(tuple(row[place] for place in places) for row in self.rows)


@dataclass(frozen=True)
class Commit:
    """One transaction of the writer."""

    number: int
    trial: str
    script: str
    begun: int
    """The server's log before its commit record."""
    ended: int
    phase: str

    @property
    def text(self) -> str:
        return f"{self.ended >> 32:X}/{self.ended & 0xFFFFFFFF:X}"


def parse_lsn(text: str) -> int:
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


class Recorder:
    """The one writer of a database. What it commits is recorded for the schemas of a trial."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.commits: list[Commit] = []
        self.phase = "setup"
        self._ended: list[int] = []
        self._history: dict[str, list[tuple[int, Recorded | None]]] = {}

    @property
    def tables(self) -> list[str]:
        return list(self._history)

    def connect(self, schema: str) -> psycopg.Connection:
        """A session of one trial."""
        return psycopg.connect(self.dsn, autocommit=True, options=_OUTPUT.format(schema))

    def commit(self, conn: psycopg.Connection, trial: str, script: str, *, alone: bool = False) -> Commit:
        """Run a script as one transaction, and record what the trial's tables are then; with `alone`, as a statement
        that is a transaction of its own."""
        begun = _now(conn)
        if alone:
            conn.execute(script)
        else:
            conn.execute("begin")
            conn.execute(script)
            begun = _now(conn)
            conn.execute("commit")
        commit = Commit(len(self.commits), trial, script, begun, _now(conn), self.phase)
        found = dict(_recorded(conn, [trial, f"{trial}_away", f"{trial}_new"]))
        for table in {*found, *self.tables_of(trial)}:
            entries = self._history.setdefault(table, [])
            if not entries or entries[-1][1] != found.get(table):
                entries.append((commit.number, found.get(table)))
        self._ended.append(commit.ended)
        self.commits.append(commit)
        return commit

    def try_commit(self, conn: psycopg.Connection, trial: str, script: str) -> None:
        """The same, unless the server refuses it."""
        with suppress(psycopg.Error):
            self.commit(conn, trial, script)
            return
        conn.execute("rollback")

    def tables_of(self, trial: str) -> list[str]:
        """Every table that the trial ever had."""
        schemas = {trial, f"{trial}_away", f"{trial}_new"}
        return [table for table in list(self._history) if table.split(".")[0] in schemas]

    def entry(self, table: str, number: int) -> Recorded | None:
        """A table after a commit; None if there was none."""
        return next((found for _, found in self.entries(table, number)), None)

    def newest(self, table: str) -> State | None:
        """A table as it is now."""
        found = self.entry(table, len(self.commits))
        return None if found is None else found.state

    def entries(self, table: str, number: int) -> list[tuple[int, Recorded | None]]:
        """What a table was up to a commit, and from which on, the newest first."""
        entries = self._history.get(table, [])
        return entries[: bisect_right(entries, number, key=lambda each: each[0])][::-1]

    def of_relation(self, relation: int, number: int) -> Recorded | None:
        """A table after a commit, under whatever name it had."""
        found = (self.entry(table, number) for table in list(self._history))
        return next((each for each in found if each is not None and each.relation == relation), None)

    def of_logged(self, position: int) -> int:
        """The commit whose record lies at a position, or the last one before a gap there."""
        number = bisect_left(self._ended, position)
        return number if self._is_inside(number, position) else number - 1

    def at_point(self, position: int) -> range:
        """The commits that a state at a position may be: one, or two inside a commit."""
        number = bisect_left(self._ended, position)
        return range(number - 1, number + self._is_inside(number, position))

    def _is_inside(self, number: int, position: int) -> bool:
        return number < len(self.commits) and position >= self.commits[number].begun


def _now(conn: psycopg.Connection) -> int:
    row = conn.execute("select pg_current_wal_insert_lsn()::text").fetchone()
    assert row is not None
    return parse_lsn(row[0])


def _recorded(conn: psycopg.Connection, schemas: list[str]) -> Iterator[tuple[str, Recorded]]:
    for schema, name, is_partitioned, relation, numbers, columns in conn.execute(_TABLES, [schemas]).fetchall():
        texts = sql.SQL(", ").join(sql.SQL(_TEXT).format(sql.Identifier(column)) for column in columns)
        # A table's heirs are tables of their own; its partitions are not.
        only = sql.SQL("" if is_partitioned else "only")
        found = conn.execute(sql.SQL("select {} from {} {}").format(texts, only, sql.Identifier(schema, name)))
        rows = tuple(sorted(found.fetchall(), key=repr))
        yield f"{schema}.{name}", Recorded(relation, tuple(numbers), tuple(columns), rows)
