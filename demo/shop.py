"""The shop: its tables, and people buying things in it.

Every transaction of the workload touches several tables, so a copy that shows half of one is wrong in a
way that can be seen. Between them they insert, update with and without the large column, delete through
foreign keys, change keys, roll back, and roll back to savepoints.
"""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg

TABLES = ("public.customers", "public.orders", "public.order_items", "public.payments")

CUSTOMERS = 10_000

Connection = psycopg.Connection[tuple[Any, ...]]

_FOLDER = Path(__file__).parent


def load(dsn: str) -> bool:
    """Makes the shop in an empty database. Returns False, and does nothing, where it already is."""
    with psycopg.connect(dsn) as connection:
        found = connection.execute("select to_regclass('public.payments')").fetchone()
        if found != (None,):
            return False
        connection.execute((_FOLDER / "shop.sql").read_bytes())
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("vacuum analyze")
    return True


class Workload:
    """Multi-table transactions from a thread of its own, at most `per_second` of them."""

    def __init__(self, dsn: str, per_second: float = 50.0, seed: int = 1) -> None:
        self.committed = 0
        self.rolled_back = 0
        self._dsn = dsn
        self._pause_seconds = 1.0 / per_second
        self._random = random.Random(seed)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="workload", daemon=True)
        self._error: BaseException | None = None

    def start(self) -> Workload:
        self._thread.start()
        return self

    def stop(self) -> None:
        """Returns after the current transaction; raises what ended the workload early, if anything did."""
        self._stopping.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def __enter__(self) -> Workload:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            with psycopg.connect(self._dsn, autocommit=True) as connection:
                while not self._stopping.wait(self._pause_seconds):
                    self._transact(connection)
        except BaseException as error:
            self._error = error

    def _transact(self, connection: Connection) -> None:
        (transaction,) = self._random.choices(list(_MIX), weights=list(_MIX.values()))
        rolls_back = self._random.random() < 0.1
        with connection.transaction(force_rollback=rolls_back):
            transaction(connection, self._random)
        if rolls_back:
            self.rolled_back += 1
        else:
            self.committed += 1


def place_order(connection: Connection, choice: random.Random) -> int:
    """An order with its items and its payment. Returns the order's number."""
    order = _insert_order(connection, choice)
    _insert_items(connection, choice, order, first_line=1)
    _pay(connection, order)
    return order


def change_mind(connection: Connection, choice: random.Random) -> None:
    """An order whose first basket is rolled back to a savepoint."""
    order = _insert_order(connection, choice)
    with connection.transaction(force_rollback=True):
        _insert_items(connection, choice, order, first_line=1)
        _pay(connection, order)
    _insert_items(connection, choice, order, first_line=2)
    _pay(connection, order)


def process_order(connection: Connection, choice: random.Random) -> None:
    """The next status, and a note about the customer that leaves the biography alone."""
    order, customer = _some_order(connection, choice)
    connection.execute(_SQL["advance_order"], {"order": order})
    note = f"order {order} handled, {choice.random():.6f}"
    connection.execute(_SQL["note_customer"], {"customer": customer, "note": note})


def retell_customer(connection: Connection, choice: random.Random) -> None:
    """A biography is rewritten, and in the same transaction the row is updated without it."""
    _, customer = _some_order(connection, choice)
    note = f"retold, {choice.random():.6f}"
    connection.execute(_SQL["retell_customer"], {"customer": customer, "note": note})
    connection.execute(_SQL["note_customer"], {"customer": customer, "note": note})


def cancel_order(connection: Connection, choice: random.Random) -> None:
    """The order goes, with its items and payments."""
    order, _ = _some_order(connection, choice)
    connection.execute(_SQL["cancel_order"], {"order": order})
    connection.execute(_SQL["delete_order"], {"order": order})


def change_keys(connection: Connection, choice: random.Random) -> None:
    """Items and payments of one order get new keys."""
    order, _ = _some_order(connection, choice)
    connection.execute(_SQL["renumber_items"], {"order": order})
    connection.execute(_SQL["replace_payment"], {"order": order})


_MIX: dict[Callable[[Connection, random.Random], object], int] = {
    place_order: 40,
    process_order: 30,
    cancel_order: 10,
    change_mind: 8,
    retell_customer: 6,
    change_keys: 6,
}


def _insert_order(connection: Connection, choice: random.Random) -> int:
    row = connection.execute(
        _SQL["insert_order"],
        {
            "customer": choice.randint(1, CUSTOMERS),
            "street": f"{choice.randint(1, 999)} Weir Road",
            "note": choice.choice([None, "", "ring twice", "leave it at the mill\n"]),
        },
    ).fetchone()
    assert row is not None
    return int(row[0])


def _insert_items(connection: Connection, choice: random.Random, order: int, first_line: int) -> None:
    for line in range(first_line, first_line + choice.randint(1, 4)):
        item = {
            "order": order,
            "line": line,
            "product": f"product {choice.randint(0, 499)}",
            "quantity": choice.randint(1, 9),
            "price": Decimal(choice.randint(100, 9999)).scaleb(-2),
            "discount": choice.choice([None, choice.random() * 0.3]),
        }
        connection.execute(_SQL["insert_item"], item)


def _pay(connection: Connection, order: int) -> None:
    row = connection.execute(_SQL["total_order"], {"order": order}).fetchone()
    assert row is not None
    connection.execute(_SQL["insert_payment"], {"order": order, "amount": row[0]})


def _some_order(connection: Connection, choice: random.Random) -> tuple[int, int]:
    highest = connection.execute(_SQL["highest_order"]).fetchone()
    assert highest is not None
    row = connection.execute(_SQL["nearest_order"], {"from": choice.randint(1, highest[0])}).fetchone()
    assert row is not None
    return int(row[0]), int(row[1])


def _named_queries(path: Path) -> dict[str, bytes]:
    """The queries of a file by name; each follows a line `-- name: what it is for`."""
    parts = re.split(r"^-- (\w+): .*\n", path.read_text(), flags=re.MULTILINE)
    return {name: query.strip().encode() for name, query in zip(parts[1::2], parts[2::2], strict=True)}


_SQL = _named_queries(_FOLDER / "workload.sql")
