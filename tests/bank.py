"""A bank over five tables, with writers that transfer money all the time, and what must hold in every state of it.

Money lies in accounts of three branches, each a table. A transfer is a row that names two accounts by foreign keys, and
two entries, one for each account. No transaction makes money or loses it. What an account has is what it was opened
with and the sum of its entries. So a state that mixes two transactions shows.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psycopg
import pyarrow as pa
from psycopg import sql

BRANCHES = ("a", "b", "c")
OPENED_WITH = 1000
TABLES = tuple(f"public.{name}" for name in ("accounts_a", "accounts_b", "accounts_c", "transfers", "entries"))

_BRANCH = """
create table accounts_{0} (id int primary key, balance bigint not null, note text);
alter table accounts_{0} alter note set storage external;
insert into accounts_{0} select n, {1}, repeat(md5(n::text), 100) from generate_series(1, {2}) n;
"""
_REFERENCES = ", ".join(
    f"{side}_{b} int references accounts_{b} on update cascade" for side in ("from", "to") for b in BRANCHES
)
_MONEY = f"""
create table transfers (id bigint generated always as identity primary key, {_REFERENCES}, amount bigint not null);
create table entries (
    transfer bigint references transfers on delete cascade, side int,
    a int references accounts_a on update cascade,
    b int references accounts_b on update cascade,
    c int references accounts_c on update cascade,
    amount bigint not null, primary key (transfer, side)
);
"""

_ACCOUNTS = " union all ".join(f"select '{b}' as branch, id, balance from accounts_{b}" for b in BRANCHES)
_ENTRIES = " union all ".join(
    f"select '{b}' as branch, {b} as id, amount from entries where {b} is not null" for b in BRANCHES
)
_DANGLING = " union all ".join(
    f"select 1 as n from {table} t left join accounts_{b} o on t.{column} = o.id "
    f"where t.{column} is not null and o.id is null"
    for b in BRANCHES
    for table, column in (("transfers", f"from_{b}"), ("transfers", f"to_{b}"), ("entries", b))
)
AUDIT = f"""
with accounts as ({_ACCOUNTS}),
    booked as (select branch, id, sum(amount) as amount from ({_ENTRIES}) e group by branch, id),
    pairs as (select transfer, count(*) as n, sum(amount) as amount from entries group by transfer)
select
    (select cast(sum(balance) as bigint) from accounts) as money,
    (select count(*) from accounts) as accounts,
    (select count(*) from accounts left join booked on accounts.branch = booked.branch and accounts.id = booked.id
        where accounts.balance <> {OPENED_WITH} + coalesce(booked.amount, 0)) as wrong_balances,
    (select count(*) from ({_DANGLING}) d) as dangling,
    (select count(*) from transfers full outer join pairs on transfers.id = pairs.transfer
        where transfers.id is null or pairs.transfer is null or pairs.n <> 2 or pairs.amount <> 0) as wrong_pairs
"""
"""One row, in Postgres, DuckDB and Spark alike: see `fine`."""


def fine(accounts: int) -> tuple[int, ...]:
    """What the audit of a bank with so many accounts gives."""
    return (OPENED_WITH * accounts, accounts, 0, 0, 0)


def audit(tables: Mapping[str, pa.Table]) -> tuple[int, ...]:
    """What `AUDIT` gives, from the rows of the tables."""
    rows = {name.removeprefix("public."): tables[name].to_pylist() for name in TABLES}
    balances = {(b, row["id"]): row["balance"] for b in BRANCHES for row in rows[f"accounts_{b}"]}
    entries = [(row, (b, row[b])) for row in rows["entries"] for b in BRANCHES if row[b] is not None]
    named = [(b, row[f"{side}_{b}"]) for row in rows["transfers"] for side in ("from", "to") for b in BRANCHES]
    expected = Counter(dict.fromkeys(balances, OPENED_WITH))
    pairs: dict[int, list[int]] = {row["id"]: [] for row in rows["transfers"]}
    for row, account in entries:
        expected[account] += row["amount"]
        pairs.setdefault(row["transfer"], []).append(row["amount"])
    accounts = sum(len(rows[f"accounts_{b}"]) for b in BRANCHES)
    assert accounts == len(balances), "an account is there twice"
    return (
        sum(balances.values()),
        accounts,
        sum(balance != expected[account] for account, balance in balances.items()),
        sum(each not in balances for each in [*named, *(e for _, e in entries)] if each[1] is not None),
        sum(len(amounts) != 2 or sum(amounts) != 0 for amounts in pairs.values())
        + len(pairs.keys() ^ {row["id"] for row in rows["transfers"]}),
    )


def open_bank(dsn: str, accounts_each: int) -> None:
    with psycopg.connect(dsn) as conn:
        conn.execute("".join(_BRANCH.format(b, OPENED_WITH, accounts_each) for b in BRANCHES) + _MONEY)


@contextmanager
def open_for_business(dsn: str, accounts_each: int, writers: int = 4, seed: int = 1) -> Iterator[list[int]]:
    """Writers that transfer inside the `with`. Gives the number of transactions of each so far."""
    over = threading.Event()
    counts = [0] * writers
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            with psycopg.connect(dsn) as conn:
                clerk = _Clerk(conn, accounts_each, random.Random(seed * 100 + number))
                while not over.is_set():
                    counts[number] += clerk.serve()
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(writers)]
    for thread in threads:
        thread.start()
    try:
        yield counts
    finally:
        over.set()
        for thread in threads:
            thread.join()
    assert not errors


class _Clerk:
    """One connection that does one transaction after another."""

    def __init__(self, conn: psycopg.Connection, accounts_each: int, chance: random.Random) -> None:
        self._conn = conn
        self._accounts = accounts_each
        self._chance = chance

    def serve(self) -> bool:
        """One transaction; False if it came to nothing."""
        way = self._chance.choices([self._transfer, self._cancel, self._renumber, self._think_again], [55, 35, 5, 5])[0]
        try:
            with self._conn.transaction():
                return way()
        except (psycopg.errors.DeadlockDetected, psycopg.errors.UniqueViolation):
            pass
        return False

    def _transfer(self) -> bool:
        one, other, amount = self._account(), self._account(), self._chance.randint(1, 50)
        if one == other or not (self._book(one, -amount) and self._book(other, amount)):
            raise psycopg.Rollback
        columns = sql.SQL(", ").join(map(sql.Identifier, (f"from_{one[0]}", f"to_{other[0]}")))
        into = sql.SQL("insert into transfers ({}, amount) values (%s, %s, %s) returning id").format(columns)
        found = self._conn.execute(into, [one[1], other[1], amount]).fetchone()
        assert found is not None
        for side, ((branch, account), change) in enumerate(((one, -amount), (other, amount))):
            entry = sql.SQL("insert into entries (transfer, side, {}, amount) values (%s, %s, %s, %s)")
            self._conn.execute(entry.format(sql.Identifier(branch)), [found[0], side, account, change])
        return True

    def _cancel(self) -> bool:
        """Take a transfer back. Its entries go with it."""
        query = "select id from transfers order by id desc offset %s limit 1 for update skip locked"
        found = self._conn.execute(query, [self._chance.randint(0, 50)]).fetchone()
        if found is None:
            raise psycopg.Rollback
        query = "select a, b, c, amount from entries where transfer = %s for update"
        for *accounts, amount in self._conn.execute(query, found).fetchall():
            account = next((b, id_) for b, id_ in zip(BRANCHES, accounts, strict=True) if id_ is not None)
            self._book(account, -amount)
        return bool(self._conn.execute("delete from transfers where id = %s", found).rowcount)

    def _think_again(self) -> bool:
        """Half a transfer, taken back, then a whole one."""
        with self._conn.transaction(force_rollback=True):
            self._book(self._account(), 10)
        return self._transfer()

    def _renumber(self) -> bool:
        """An account gets another number, and so does all that names it."""
        branch, account = self._account()
        query = sql.SQL("update {} set id = %s where id = %s").format(sql.Identifier(f"accounts_{branch}"))
        return bool(self._conn.execute(query, [self._chance.randint(1, 2 * self._accounts), account]).rowcount)

    def _account(self) -> tuple[str, int]:
        return self._chance.choice(BRANCHES), self._chance.randint(1, 2 * self._accounts)

    def _book(self, account: tuple[str, int], amount: int) -> bool:
        table = sql.Identifier(f"accounts_{account[0]}")
        query = sql.SQL("update {} set balance = balance + %s where id = %s").format(table)
        return bool(self._conn.execute(query, [amount, account[1]]).rowcount)
