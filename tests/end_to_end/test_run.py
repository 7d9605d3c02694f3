"""`tailrace run`: a connector that a file configures copies a real database, and continues."""

from __future__ import annotations

from pathlib import Path

import psycopg
from demo.compare import compare
from psycopg.conninfo import conninfo_to_dict
from tests.journey import run

PASSWORD = "it's a \\ secret"
CONFIGURATION = """
connector.class: io.debezium.connector.postgresql.PostgresConnector
database:
  hostname: {host}
  port: {port}
  user: {user}
  password: ${{env:SHOP_PASSWORD}}
  dbname: {dbname}
topic.prefix: shop
slot.name: {dbname}_run
table.include.list:
  - shop\\.orders
  - shop\\.item_.*
max.queue.size: 8192
lake.path: {lake}
"""
TABLES = """
create schema shop;
create table shop.orders (id int primary key, note text);
create table shop.item_1 (id int primary key);
create table shop."ITEM_2" (id int primary key);
create table shop.customers (id int primary key);
create table other (id int primary key);
insert into shop.orders select n, 'order ' || n from generate_series(1, 100) n;
insert into shop.item_1 values (1), (2);
insert into shop."ITEM_2" values (3);
"""


def test_a_connector_copies_the_tables_of_its_file_and_continues(database: str, tmp_path: Path) -> None:
    lake, file = tmp_path / "lake", tmp_path / "shop.yaml"
    given = {"port": "5432"} | conninfo_to_dict(database)
    file.write_text(CONFIGURATION.format(lake=lake, **given))
    with psycopg.connect(database) as conn:
        conn.execute(TABLES)

    first = run("run", "--once", str(file), SHOP_PASSWORD=PASSWORD)
    assert first.returncode == 0, first
    assert first.stderr == "warning: max.queue.size: there is no queue: changes go to the log on disk\n"
    assert PASSWORD not in first.stdout
    assert_equal(database, lake)
    assert not (lake / "shop" / "customers").exists()

    with psycopg.connect(database) as conn:
        conn.execute("update shop.orders set note = 'changed' where id = 7; delete from shop.item_1 where id = 1")
        slots = conn.execute(
            "select slot_name from pg_replication_slots where database = current_database()"
        ).fetchall()
    assert slots == [(f"{given['dbname']}_run",)]
    second = run("run", "--once", str(file), SHOP_PASSWORD=PASSWORD)
    assert second.returncode == 0, second
    assert "snapshot of" not in second.stdout
    assert_equal(database, lake)
    stored = [path for path in (lake / "_tailrace").rglob("*") if path.is_file()]
    assert [path for path in stored if PASSWORD.encode() in path.read_bytes()] == []


def assert_equal(dsn: str, lake: Path) -> None:
    tables = ("shop.orders", "shop.item_1", "shop.ITEM_2")
    assert [table for table in compare(dsn, lake, tables) if not table.equal] == []
