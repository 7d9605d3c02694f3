"""A server whose connector follows a shop that is so small that a test knows every row of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.integration.lake.equality import execute
from tests.postgres import wait_until
from tests.serving import WAIT_SECONDS, Served, config_for, serving

SHOP = """
create table customers (id int primary key, name text not null, email text);
create table orders (id int primary key, customer_id int references customers, total numeric(10, 2), note text);
create table payments (id int primary key, order_id int not null references orders, paid_at timestamptz default now());
insert into customers select n, 'customer ' || n, 'customer' || n || '@example.com' from generate_series(1, 10) n;
insert into orders select n, 1 + n % 10, n * 1.25, 'order ' || n from generate_series(1, 20) n;
insert into payments (id, order_id) select n, n from generate_series(1, 15) n;
"""
TABLES = ("public.customers", "public.orders", "public.payments")


@dataclass
class SmallShop:
    """One connector, the database that it follows, and the server that runs it."""

    server: Served
    dsn: str
    name: str = "shop"

    @property
    def address(self) -> str:
        return self.server.address

    @property
    def lake(self) -> Path:
        return Path(self.server.supervisor.lake_home(self.name).lake)

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """A request below `/connectors/NAME`: `shop.ask("GET", "/offsets")`."""
        return self.server.ask(method, f"/connectors/{quote(self.name, safe='')}{path}", body, **more)

    def commit(self, script: str) -> int:
        """Changes the database in one transaction, and waits until the lake shows it; the transaction's number."""
        before = self.newest_seq()
        execute(self.dsn, script)
        wait_until(lambda: self.newest_seq() > before, WAIT_SECONDS)
        return self.newest_seq()

    def newest_seq(self) -> int:
        """Of the newest cut; -1 before the first."""
        cut = self.ask("GET", "/progress")["cut"]
        return int(cut["seq"]) if cut else -1

    def wait_for(self, state: str) -> None:
        """Until the API shows it in this state: `RUNNING`, `PAUSED`, `STOPPED`, `FAILED` …"""
        self.server.wait_for(self.name, state)

    def wait_until_live(self) -> None:
        """Until it runs and its lake shows every table."""
        self.wait_for("RUNNING")
        wait_until(self._is_live, WAIT_SECONDS)

    def run(self) -> None:
        """Whatever a test before this one left: it runs, and its lake shows every table."""
        if self.ask("GET", "/status")["connector"]["state"] != "RUNNING":
            self.ask("PUT", "/resume", status=202)
        self.wait_until_live()

    def pause(self) -> None:
        self.ask("PUT", "/pause", status=202)
        self.wait_for("PAUSED")

    def stop(self) -> None:
        self.ask("PUT", "/stop", status=204)
        self.wait_for("STOPPED")

    def _is_live(self) -> bool:
        tables = self.ask("GET", "/tables")
        return len(tables) >= len(TABLES) and all(each["state"] == "live" for each in tables)


@contextmanager
def small_shop(dsn: str, home: Path, name: str = "shop", **properties: str) -> Iterator[SmallShop]:
    """A server of its own at a free port, with one connector that follows the shop; live when it comes."""
    execute(dsn, SHOP)
    with serving(home) as server:
        shop = SmallShop(server, dsn, name)
        server.create(name, config_for(dsn, **properties))
        shop.wait_until_live()
        yield shop
