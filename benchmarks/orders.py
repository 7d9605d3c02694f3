"""A table of seven columns, and changes to it: half updates, four tenths inserts, one tenth deletes."""

from __future__ import annotations

from typing import Any

import numpy as np
import psycopg

RECENT_ROWS = 10_000
"""Keys among the newest so many are recent."""
SHARES = (0.5, 0.4, 0.1)
"""Of updates, inserts and deletes."""

_CREATE = """
create table {name} (
    id bigint primary key, customer int not null, total numeric(12, 2) not null, status text not null,
    placed timestamptz not null, note text, paid boolean not null
)
"""
_ROWS = """
insert into {name}
select n, n % 100000, (n % 1000000) / 100.0, (array['new', 'paid', 'shipped', 'returned'])[1 + n % 4],
       timestamptz '2026-01-01' + n * interval '1 second', case when n % 10 <> 0 then 'a note about order ' || n end,
       n % 3 = 0
from {numbers} n
"""
_UPDATE = """
update {name} set total = total + 1, status = 'changed', note = 'changed order ' || id, paid = true
where id = any (%s)
"""
_DELETE = "delete from {name} where id = any (%s)"


class Orders:
    """The table and which of its keys are there. The same seed makes the same changes."""

    def __init__(self, dsn: str, name: str, rows: int, seed: int = 1) -> None:
        self.dsn = dsn
        self.name = name
        self._first_rows = rows
        self._chance = np.random.default_rng(seed)
        self._is_there = np.ones(rows + 1, bool)
        """By key; there is no key 0, but none is drawn either."""
        self._next = rows + 1

    @property
    def newest(self) -> int:
        """The largest key."""
        return self._next - 1

    @property
    def rows(self) -> int:
        return int(self._is_there[1 : self._next].sum())

    def load(self) -> Orders:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(_CREATE.format(name=self.name))
            connection.execute(_ROWS.format(name=self.name, numbers=f"generate_series(1, {self._first_rows})"))
            connection.execute(f"vacuum analyze {self.name}")
        return self

    def change(self, changes: int, *, each: int = 1000, recent: bool = False, at_once: bool = False) -> None:
        """So many changes in transactions of `each`, or in one when `at_once`; to any rows, or to recent ones."""
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            if at_once:
                with connection.transaction():
                    self._change_all(connection, changes, each, recent)
            else:
                self._change_all(connection, changes, each, recent)

    def _change_all(self, connection: psycopg.Connection[Any], changes: int, each: int, recent: bool) -> None:
        for begin in range(0, changes, each):
            with connection.transaction():
                self.change_some(connection, min(each, changes - begin), recent)

    def change_some(self, connection: psycopg.Connection[Any], changes: int, recent: bool = False) -> None:
        """So many changes, in the transaction that is open."""
        updates, inserts, deletes = (round(share * changes) for share in SHARES)
        keys = self._draw(updates + deletes, max(1, self._next - RECENT_ROWS) if recent else 1)
        connection.execute(_UPDATE.format(name=self.name), [keys[:updates].tolist()])
        numbers = f"generate_series({self._next}, {self._next + inserts - 1})"
        connection.execute(_ROWS.format(name=self.name, numbers=numbers))
        connection.execute(_DELETE.format(name=self.name), [keys[updates:].tolist()])
        self._is_there[keys[updates:]] = False
        self._next += inserts
        if self._next > len(self._is_there):
            more = max(inserts, len(self._is_there) // 2)
            self._is_there = np.concatenate([self._is_there, np.ones(more, bool)])

    def _draw(self, count: int, first: int) -> np.ndarray:
        """Different keys that are there, none smaller than `first`."""
        found = np.empty(0, np.int64)
        while len(found) < count:
            drawn = self._chance.integers(first, self._next, 2 * count)
            _, places = np.unique(np.concatenate([found, drawn[self._is_there[drawn]]]), return_index=True)
            found = np.concatenate([found, drawn[self._is_there[drawn]]])[np.sort(places)]
        return found[:count]
