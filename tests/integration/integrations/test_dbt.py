"""The plugin for dbt: every model of a run sees one cut, whatever is committed meanwhile."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import duckdb
import pytest
from tests.doors.one_thread import OneThread
from tests.integration.lake.equality import execute
from tests.running import sync_once

import tailrace
from tailrace.errors import DefiniteError
from tailrace.integrations.dbt import Plugin
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

ROOT = Path(__file__).resolve().parents[3]
HERE = "tests.integration.integrations.test_dbt"
DBT = ("dbt-core<1.12", "dbt-duckdb==1.11.1", "duckdb==1.5.5")
"""Later versions of dbt-core fetch a part of themselves from a site that is no package registry."""
BOTH = "select (select count(*) from orders), (select count(*) from items)"


@pytest.fixture
def shop(database: str, tmp_path: Path) -> tuple[str, Path]:
    """A database and its lake: each order has two items."""
    script = "create table {0} (id int primary key); insert into {0} select generate_series(1, {1});"
    execute(database, script.format("orders", 10) + script.format("items", 20))
    sync(database, tmp_path / "lake")
    return database, tmp_path / "lake"


def sync(database: str, lake: Path) -> None:
    sync_once(ConnectorSettings(lake, once=True), source_of(database), OneThread())


def order(database: str, lake: Path, number: int) -> None:
    """One transaction more, published."""
    items = f"insert into items values ({2 * number - 1}), ({2 * number})"
    execute(database, f"begin; insert into orders values ({number}); {items}; commit")
    sync(database, lake)


def test_every_connection_of_a_run_sees_the_cut_that_was_chosen_first(shop: tuple[str, Path]) -> None:
    database, lake = shop
    plugin = Plugin("tailrace", {"lake": str(lake)})
    with duckdb.connect() as parent:
        plugin.configure_connection(parent)
        first = parent.cursor()
        plugin.configure_cursor(first)
        assert first.sql(BOTH).fetchall() == [(10, 20)]
        order(database, lake, 11)
        later = parent.cursor()
        plugin.configure_cursor(later)
        assert later.sql(BOTH).fetchall() == [(10, 20)]
        shown = "select getvariable('tailrace_cut'), getvariable('tailrace_committed') is not null"
        assert first.sql(shown).fetchall() == later.sql(shown).fetchall()
        first.close()
        later.close()
    # dbt closes its database when no model runs, and opens it again.
    with duckdb.connect() as again:
        plugin.configure_connection(again)
        plugin.configure_cursor(again)
        assert again.sql(BOTH).fetchall() == [(10, 20)]
        assert again.sql('select count(*) from "public.orders"').fetchall() == [(10,)]
    with duckdb.connect() as newer:
        other = Plugin("tailrace", {"lake": str(lake)})
        other.configure_connection(newer)
        other.configure_cursor(newer)
        assert newer.sql(BOTH).fetchall() == [(11, 22)]


def test_a_run_can_be_pinned_and_can_take_only_some_tables(shop: tuple[str, Path]) -> None:
    database, lake = shop
    order(database, lake, 11)
    with duckdb.connect() as connection:
        pinned = tailrace.cut(connection, lake, register=False).text
    order(database, lake, 12)
    config = {"lake": str(lake), "as_of": pinned, "tables": ["orders"], "threads": "ignored: a setting of DuckDB's"}
    plugin = Plugin("tailrace", config)
    with duckdb.connect() as connection:
        plugin.configure_connection(connection)
        plugin.configure_cursor(connection)
        assert connection.sql("select count(*), getvariable('tailrace_cut') from orders").fetchall() == [(11, pinned)]
        with pytest.raises(duckdb.CatalogException):
            connection.sql("select count(*) from items")


def test_what_is_missing_or_makes_no_sense_is_said(tmp_path: Path) -> None:
    with pytest.raises(DefiniteError, match="has no lake"):
        Plugin("tailrace", {})
    with duckdb.connect() as connection, pytest.raises(DefiniteError, match="is not a Tailrace lake"):
        Plugin("tailrace", {"lake": str(tmp_path / "none")}).configure_connection(connection)
    with pytest.raises(DefiniteError, match="by its connector alone"):
        Plugin("tailrace", {"lake": "x"}).store(None)


PROFILES = """
shop:
  target: dev
  outputs:
    dev:
      type: duckdb
      path: {folder}/marts.duckdb
      threads: 2
      plugins:
        - module: tailrace.integrations.dbt
          config:
            lake: {lake}
            as_of: "{{{{ env_var('TAILRACE_AS_OF', '') }}}}"
"""
PROJECT = "name: shop\nversion: '1.0'\nprofile: shop\nmodels:\n  shop:\n    +materialized: table\n"
ORDERS = "select count(*) as n, getvariable('tailrace_cut') as cut from orders"
ITEMS = "-- depends_on: {{ ref('order_count') }}\nselect count(*) as n, getvariable('tailrace_cut') as cut from items"

BETWEEN = """
import subprocess

def model(dbt, session):
    dbt.ref("order_count")
    subprocess.run({command!r}, check=True)
    return session.sql("select 1 as done")
"""


def write_model(project: Path, database: str, lake: Path, number: int) -> None:
    """Between the two others: another order comes in, and is published."""
    work = f"from pathlib import Path; from {HERE} import order; order({database!r}, Path({str(lake)!r}), {number})"
    text = BETWEEN.format(command=[sys.executable, "-c", work])
    (project / "models" / "another_order.py").write_text(text, encoding="utf-8")


@pytest.mark.proof
@pytest.mark.timeout(1800)
def test_a_real_run_of_dbt_sees_one_cut_while_orders_come_in(shop: tuple[str, Path], tmp_path: Path) -> None:
    """dbt comes from the package registry. `items` is read after `orders`, and after another order was published."""
    database, lake = shop
    environment, project = tmp_path / "dbt", tmp_path / "project"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    subprocess.run([environment / "bin" / "pip", "install", "--quiet", *DBT], check=True)
    (own,) = (environment / "lib").glob("python*/site-packages")
    beside = [sysconfig.get_path("purelib"), str(Path(tailrace.__path__[0]).parent), str(ROOT)]
    (own / "beside.pth").write_text("\n".join(beside) + "\n", encoding="utf-8")
    (project / "models").mkdir(parents=True)
    (project / "dbt_project.yml").write_text(PROJECT, encoding="utf-8")
    (project / "profiles.yml").write_text(PROFILES.format(folder=tmp_path, lake=lake), encoding="utf-8")
    (project / "models" / "order_count.sql").write_text(ORDERS, encoding="utf-8")
    write_model(project, database, lake, 11)
    items = ITEMS.replace("order_count", "another_order")
    (project / "models" / "item_count.sql").write_text(items, encoding="utf-8")

    def run(**variables: str) -> list[tuple[int, int, bool]]:
        command = [environment / "bin" / "dbt", "--no-use-colors", "run", "--profiles-dir", "."]
        variables |= {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
        done = subprocess.run(
            command, cwd=project, env=os.environ | variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert json.loads((project / "target" / "run_results.json").read_text())["results"]
        with duckdb.connect(str(tmp_path / "marts.duckdb"), read_only=True) as marts:
            query = "select o.n, i.n, o.cut = i.cut from order_count o, item_count i"
            return marts.sql(query).fetchall()

    assert run() == [(10, 20, True)]
    with duckdb.connect() as connection:
        newest = tailrace.cut(connection, lake, register=False)
        assert newest.tables["public.orders"].aggregate("count(*)").fetchall() == [(11,)]
        pinned = newest.text
    write_model(project, database, lake, 12)
    assert run(TAILRACE_AS_OF=pinned) == [(11, 22, True)]
