"""A machine that is lost with all that was on it: the lake in the bucket is continued elsewhere, by what the source
still has, and is the source. No table that had been copied is copied again."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest
from demo.embedded import EmbeddedPostgres
from tests import bank
from tests.crash.machine import settings_for
from tests.integration.lake.equality import assert_equal, execute
from tests.integration.postgres.test_set_back import Server
from tests.postgres import wait_until
from tests.running import connector_of, running
from tests.s3 import S3Server

import tailrace
from tailrace.errors import DefiniteError, GapError
from tailrace.lake.home import LakeHome
from tailrace.model.lake_address import BucketLake
from tailrace.model.table_state import TableState
from tailrace.source.kinds import source_of

DEATHS = ("publish.table", "publish.table:3", "publish.durable", "publish.cut", "")
"""In the middle of a publish, so that some tables are ahead of the newest cut, before the cut, after it, anywhere."""
ACCOUNTS_EACH = 20
_numbers = itertools.count(1)


@pytest.fixture
def order(database: str, s3: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    bucket = s3.make_bucket(f"machines-{tmp_path.name.replace('_', '-').lower()[:40]}-{next(_numbers)}")
    # A machine that is gone keeps the next one waiting for as long as its lease lasts.
    options = {**s3.options, "lease_seconds": "1"}
    return {"dsn": database, "lake": f"{bucket}/bank", "options": options, "home": str(tmp_path / "machine" / "home")}


@contextmanager
def machine(order: Mapping[str, Any], death: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """A connector on a machine which is gone, home and all, when the `with` ends."""
    variables = os.environ | {"TAILRACE_FAILPOINT": death}
    process = subprocess.Popen([sys.executable, "-m", "tests.crash.machine", json.dumps(order)], env=variables)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(order["home"], ignore_errors=True)


def address(order: Mapping[str, Any]) -> BucketLake:
    lake = settings_for(dict(order)).lake
    assert isinstance(lake, BucketLake)
    return lake


def seq(order: Mapping[str, Any]) -> int:
    """Of the newest cut; -1 while there is none."""
    home = LakeHome(address(order))
    newest = home.cuts.newest() if home.source() is not None else None
    return -1 if newest is None else newest.seq


def copies(order: Mapping[str, Any]) -> set[int]:
    return {record.copy for record in LakeHome(address(order)).tables.load().values()}


def assert_true_cut(order: Mapping[str, Any]) -> None:
    """The newest cut is a state that the bank was in."""
    found = {table: tailrace.arrow(address(order), table, published=True) for table in bank.TABLES}
    assert bank.audit(found) == bank.fine(3 * ACCOUNTS_EACH)


@pytest.mark.timeout(600)
def test_machine_after_machine_is_lost_while_writers_write_and_the_lake_is_continued_and_never_copied_again(
    order: dict[str, Any],
) -> None:
    dsn, dice = order["dsn"], random.Random(7)
    bank.open_bank(dsn, ACCOUNTS_EACH)
    with bank.open_for_business(dsn, ACCOUNTS_EACH, writers=2):
        with machine(order) as process:
            wait_until(lambda: seq(order) >= 3 or process.poll() is not None, 60)
        for death in DEATHS:
            before = seq(order)
            with machine(order, death) as process:
                if death:
                    assert process.wait(120) == -signal.SIGKILL, death
                else:
                    wait_until(lambda: seq(order) > before + dice.randrange(1, 20), 120)  # noqa: B023
            assert_true_cut(order)
    with running(settings_for(order), source_of(dsn)) as run:
        run.catch_up()
        assert_equal(dsn, address(order), *bank.TABLES)
    assert copies(order) == {1}, "nothing was copied again"


def test_a_machine_that_is_lost_with_the_first_cut_does_not_take_up_again_what_was_copied(
    order: dict[str, Any],
) -> None:
    """The source sends again what committed before the rows were read: it has been told of nothing yet."""
    dsn = order["dsn"]
    bank.open_bank(dsn, ACCOUNTS_EACH)
    with bank.open_for_business(dsn, ACCOUNTS_EACH, writers=2), machine(order, "publish.cut") as process:
        assert process.wait(120) == -signal.SIGKILL
    assert_true_cut(order)
    with running(settings_for(order), source_of(dsn)) as run:
        run.catch_up()
        assert_equal(dsn, address(order), *bank.TABLES)
    assert copies(order) == {1}, "nothing was copied again"


def confirmed(order: Mapping[str, Any]) -> int:
    """Up to where the source has been told, as an LSN."""
    query = "select confirmed_flush_lsn - '0/0'::pg_lsn from pg_replication_slots where slot_name like 'tailrace_%%'"
    query += " and database = current_database()"
    with psycopg.connect(order["dsn"]) as conn:
        found = conn.execute(query).fetchone()
    return int(found[0]) if found is not None else -1


def written(order: Mapping[str, Any]) -> int:
    """Where the server's log ends."""
    with psycopg.connect(order["dsn"]) as conn:
        found = conn.execute("select pg_current_wal_lsn() - '0/0'::pg_lsn").fetchone()
    assert found is not None
    return int(found[0])


SETUP = "create table orders (id int primary key, note text); insert into orders values (1, 'first')"


def test_the_source_keeps_what_no_cut_has_and_lets_go_of_what_concerns_no_table(order: dict[str, Any]) -> None:
    dsn = order["dsn"]
    execute(dsn, SETUP)
    with running(settings_for(order), source_of(dsn)) as run:
        run.catch_up()
        run.connector.pause()
        before = confirmed(order)
        execute(dsn, "insert into orders values (2, 'second')")
    assert confirmed(order) <= before + 1024, "no cut has it"
    with running(settings_for(order), source_of(dsn)) as run:
        run.catch_up()
        execute(dsn, "create temporary table away as select generate_series(1, 20000)")
        execute(dsn, "select pg_logical_emit_message(false, 'noise', repeat('x', 1000000), true)")
        end = written(order)
        wait_until(lambda: confirmed(order) >= end, 60)
    shutil.rmtree(order["home"])
    with running(settings_for(order), source_of(dsn)) as run:
        run.catch_up()
        assert_equal(dsn, address(order), "public.orders")
    assert copies(order) == {1}


def test_what_was_prepared_before_the_machine_was_lost_and_is_committed_after_is_not_lost(
    order: dict[str, Any],
) -> None:
    with (
        TemporaryDirectory(prefix="tailrace-") as folder,
        EmbeddedPostgres(Path(folder) / "data", settings={"max_prepared_transactions": "5"}) as server,
        psycopg.connect(server.dsn(), autocommit=True) as conn,
    ):
        order["dsn"] = dsn = server.dsn()
        conn.execute(SETUP)
        conn.execute("select pg_create_logical_replication_slot('mine', 'pgoutput', false, true)")
        source = source_of(dsn, slot="mine", stream={"two_phase": True})
        with running(settings_for(order), source) as run:
            run.catch_up()
            conn.execute("begin; insert into orders values (2, 'prepared'); prepare transaction 'a'")
            conn.execute("insert into orders values (3, 'after')")
            run.catch_up()
        shutil.rmtree(order["home"])
        with running(settings_for(order), source) as run:
            run.catch_up()
            conn.execute("commit prepared 'a'")
            run.catch_up()
            assert_equal(dsn, address(order), "public.orders")
    assert copies(order) == {1}


def test_a_copy_that_was_under_way_begins_again_and_no_other_table_does(order: dict[str, Any]) -> None:
    dsn = order["dsn"]
    execute(dsn, SETUP)
    with machine(order, "window.published") as process:
        wait_until(lambda: seq(order) >= 0, 60)
        execute(dsn, "create table lines (id int primary key); insert into lines select generate_series(1, 50000)")
        assert process.wait(120) == -signal.SIGKILL
    with running(settings_for(order), source_of(dsn)) as run:
        run.wait_for_state("public.lines", TableState.LIVE)
        run.catch_up()
        assert_equal(dsn, address(order), "public.orders", "public.lines")
    found = LakeHome(address(order)).tables.load()
    assert {table.name: record.copy for table, record in found.items()} == {"orders": 1, "lines": 2}


def test_a_source_that_was_told_of_the_log_is_not_continued_without_it(order: dict[str, Any]) -> None:
    dsn = order["dsn"]
    execute(dsn, SETUP)
    with running(settings_for(order), source_of(dsn)) as run:
        run.catch_up()
    with running(settings_for({**order, "confirm": "disk"}), source_of(dsn)) as run:
        run.catch_up()
        execute(dsn, "insert into orders values (2, 'second')")
        run.catch_up()
    shutil.copytree(order["home"], f"{order['home']}.kept")
    shutil.rmtree(order["home"])
    refused = connector_of(settings_for(order), source_of(dsn))
    refused.start()
    with pytest.raises(DefiniteError, match="the home of s3://"):
        refused.wait(60)
    # With its home it goes over to waiting for cuts, and can then be lost.
    shutil.move(f"{order['home']}.kept", order["home"])
    with running(settings_for(order), source_of(dsn)) as run:
        run.catch_up()
    shutil.rmtree(order["home"])
    with running(settings_for(order), source_of(dsn)) as run:
        execute(dsn, "insert into orders values (3, 'third')")
        run.catch_up()
        assert_equal(dsn, address(order), "public.orders")
    assert copies(order) == {1}


def test_a_server_that_was_set_back_is_noticed_though_the_log_is_lost(order: dict[str, Any]) -> None:
    with TemporaryDirectory(prefix="tailrace-") as folder, EmbeddedPostgres(Path(folder) / "data") as embedded:
        server = Server(embedded)
        order["dsn"] = embedded.dsn()
        server.run(SETUP)
        source = source_of(order["dsn"])
        with running(settings_for(order), source) as run:
            run.catch_up()
        server.keep()
        with running(settings_for(order), source) as run:
            server.run("insert into orders values (2, 'lost')")
            run.catch_up()
        server.put_back()
        shutil.rmtree(order["home"])
        server.run("insert into orders values (2, 'instead')", "insert into orders select generate_series(3, 500), ''")
        refused = connector_of(settings_for(order), source_of(order["dsn"]))
        refused.start()
        with pytest.raises(GapError, match="it was set back"):
            refused.wait(60)


def test_a_home_that_comes_back_after_the_lake_was_continued_without_it_is_put_aside_by_a_person(
    order: dict[str, Any],
) -> None:
    dsn = order["dsn"]
    execute(dsn, SETUP)
    with running(settings_for(order), source_of(dsn)) as run:
        run.catch_up()
        execute(dsn, "insert into orders values (2, 'second')")
        run.catch_up()
    kept = f"{order['home']}.kept"
    shutil.move(order["home"], kept)
    with running(settings_for(order), source_of(dsn)) as run:
        execute(dsn, "insert into orders values (3, 'third')")
        run.catch_up()
    shutil.move(order["home"], f"{order['home']}.second")
    shutil.move(kept, order["home"])
    refused = connector_of(settings_for(order), source_of(dsn))
    refused.start()
    with pytest.raises(DefiniteError, match="was continued without the log in") as error:
        refused.wait(60)
    subprocess.run(str(error.value.hint).partition("cut: ")[2], shell=True, check=True)
    with running(settings_for(order), source_of(dsn)) as run:
        run.catch_up()
        assert_equal(dsn, address(order), "public.orders")
    assert copies(order) == {1}
