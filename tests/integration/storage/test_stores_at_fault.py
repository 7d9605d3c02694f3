"""A store that stops answering while a connector works, or before it begins, is trouble, told and waited for. One that
would lose commits is refused before anything is made."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from tests.cutting_proxy import CuttingProxy, Fault, Request, cutting
from tests.integration.lake.equality import assert_equal, execute
from tests.postgres import wait_until
from tests.running import connector_of, running
from tests.s3 import S3Server, s3_server

from tailrace.connector.events import TroubleChanged
from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.model.lake_address import BucketLake
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

ORDERS = "public.orders"
SETUP = """
create table orders (id int primary key, total int, note text);
insert into orders select n, n, 'note ' || n from generate_series(1, 500) n;
"""


@contextmanager
def store_behind(s3: S3Server, away: threading.Event, name: str = "") -> Iterator[CuttingProxy]:
    def decide(request: Request) -> Fault:
        return Fault.BEFORE if away.is_set() and name in request.path else Fault.NONE

    with cutting(s3.port, decide=decide) as proxy:
        yield proxy


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def is_told(event: object) -> bool:
    return isinstance(event, TroubleChanged) and event.message is not None and "s3://" in event.message


@pytest.mark.parametrize("name", ["", "lease.json"])
def test_a_run_waits_for_a_store_that_is_away_for_longer_than_its_lease_and_continues(
    name: str, database: str, s3: S3Server, tmp_path: Path
) -> None:
    """Away is all that it has, or only the lease: then the run could read and write what it must not."""
    execute(database, SETUP)
    away = threading.Event()
    with store_behind(s3, away, name) as proxy:
        options = {**s3.options, **proxy.options, "lease_seconds": "1"}
        lake = BucketLake(f"{s3.make_bucket(uuid.uuid4().hex)}/shop", tuple(options.items()), tmp_path / "home")
        with running(ConnectorSettings(lake), source_of(database)) as run:
            run.catch_up()
            away.set()
            gone_at = time.monotonic()
            execute(database, "delete from orders where id = 7")

            def is_in_trouble() -> bool:
                execute(database, "update orders set total = total + 1 where id % 3 = 0")
                assert not run.connector.wait(0.2)
                return any(map(is_told, list(run.events))) and time.monotonic() - gone_at > 2.5

            wait_until(is_in_trouble, 120)
            execute(database, "insert into orders values (1000, 1, 'meanwhile')")
            away.clear()
            run.catch_up()
            assert_equal(database, lake, ORDERS)
        newest = LakeHome(lake).cuts.newest()
        assert newest is not None
        assert newest.copies == {ORDERS: 1}, "nothing was copied again"


def test_a_run_begins_when_the_store_answers(database: str, s3: S3Server, tmp_path: Path) -> None:
    execute(database, SETUP)
    away = threading.Event()
    away.set()
    with store_behind(s3, away) as proxy:
        options = {**s3.options, **proxy.options}
        lake = BucketLake(f"{s3.make_bucket(uuid.uuid4().hex)}/shop", tuple(options.items()), tmp_path / "home")
        with running(ConnectorSettings(lake), source_of(database)) as run:
            run.wait_for(lambda: any(map(is_told, list(run.events))), 120)
            away.clear()
            run.catch_up()
            assert_equal(database, lake, ORDERS)


def test_a_lake_is_not_begun_in_a_store_that_would_lose_commits(database: str, tmp_path: Path) -> None:
    execute(database, SETUP)
    with s3_server(is_open=True) as s3, cutting(s3.port, stripped=frozenset({"if-none-match"})) as proxy:
        bucket = s3.make_bucket(uuid.uuid4().hex)
        options = {**s3.options, **proxy.options}
        lake = BucketLake(f"{bucket}/shop", tuple(options.items()), tmp_path / "home")
        connector = connector_of(ConnectorSettings(lake), source_of(database))
        connector.start()
        with pytest.raises(DefiniteError, match="commits would be lost there"):
            connector.wait(60)
        assert s3.bucket(bucket, tmp_path).names() == []
    assert not (tmp_path / "home").exists()
    with psycopg.connect(database) as conn:
        slots = "select count(*) from pg_replication_slots where database = current_database()"
        assert conn.execute(slots).fetchone() == (0,)
