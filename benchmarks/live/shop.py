"""Five tables and who writes to them.

python -m benchmarks.live.shop DSN ROWS PER_SECOND   writes until its input ends; prints what it has committed
"""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from types import TracebackType
from typing import IO, Any

import psycopg
from benchmarks.children import end_of_input
from benchmarks.orders import Orders

CONNECTIONS = 4
CUSTOMERS = 50_000
STARTING = 10_000
"""Rows of each of the other tables at the start."""

_OTHERS = """
create table customers (id int primary key, name text not null, balance numeric(12, 2) not null);
insert into customers select n, 'customer ' || n, 0 from generate_series(1, {customers}) n;
create table items (id bigint generated always as identity primary key, order_id bigint, product int, amount int);
insert into items (order_id, product, amount) select n, n % 1000, 1 from generate_series(1, {starting}) n;
create table payments (id bigint generated always as identity primary key, order_id bigint, amount numeric(12, 2));
insert into payments (order_id, amount) select n, 10 from generate_series(1, {starting}) n;
create table visits (id bigint generated always as identity primary key, customer int, page text, at timestamptz);
insert into visits (customer, page, at) select n, '/', now() from generate_series(1, {starting}) n;
"""


class Shop:
    """A large table of orders and four others."""

    def __init__(self, dsn: str, rows: int) -> None:
        self.dsn = dsn
        self.rows = rows

    def load(self) -> Shop:
        Orders(self.dsn, "orders", self.rows).load()
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(_OTHERS.format(customers=CUSTOMERS, starting=STARTING))
        return self


class Writers:
    """A process that commits so many transactions a second, or as many as it can. Inside a `with`.

    Another `module` may write something else, and count that."""

    def __init__(self, dsn: str, rows: int, per_second: int, module: str = "benchmarks.live.shop") -> None:
        command = [sys.executable, "-m", module, dsn, str(rows), str(per_second)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._committed = self._before = 0
        self._begun = time.monotonic()
        self._thread = threading.Thread(target=self._listen, args=(self._process.stdout,), daemon=True)

    def __enter__(self) -> Writers:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)

    def _listen(self, output: IO[str]) -> None:
        for line in output:
            self._committed = int(line)

    def run_for(self, seconds: float) -> None:
        """Let them write alone."""
        time.sleep(seconds)
        self.count_from_now()

    def count_from_now(self) -> None:
        self._begun, self._before = time.monotonic(), self._committed

    @property
    def per_second(self) -> float:
        """Since `run_for` or `count_from_now`."""
        return (self._committed - self._before) / (time.monotonic() - self._begun)


def main() -> int:
    dsn, rows, per_second = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    end = end_of_input()
    counts = [0] * CONNECTIONS
    pace = CONNECTIONS / per_second
    for number in range(CONNECTIONS):
        threading.Thread(target=_write, args=(dsn, rows, pace, (counts, number), end), daemon=True).start()
    while not end.wait(0.2):
        print(sum(counts), flush=True)
    return 0


def _write(dsn: str, rows: int, pace: float, count: tuple[list[int], int], end: threading.Event) -> None:
    chance = random.Random(count[1])
    counts, number = count
    with psycopg.connect(dsn, autocommit=True) as connection:
        due = time.monotonic()
        while not end.is_set():
            with connection.pipeline(), connection.transaction():
                _transaction(connection, chance, rows)
            counts[number] += 1
            due = max(due + pace, time.monotonic() - 1.0)
            if (wait := due - time.monotonic()) > 0:
                end.wait(wait)


def _transaction(connection: psycopg.Connection[Any], chance: random.Random, rows: int) -> None:
    """Two or three of the five tables."""
    order, customer = chance.randint(1, rows), chance.randint(1, CUSTOMERS)
    kind = chance.random()
    connection.execute("insert into visits (customer, page, at) values (%s, '/cart', now())", [customer])
    if kind < 0.6:
        connection.execute("update orders set total = total + 1, status = 'changed' where id = %s", [order])
        connection.execute("insert into payments (order_id, amount) values (%s, 1)", [order])
    elif kind < 0.9:
        connection.execute("insert into items (order_id, product, amount) values (%s, 7, 1)", [order])
    else:
        connection.execute("update customers set balance = balance + 1 where id = %s", [customer])


if __name__ == "__main__":
    sys.exit(main())
