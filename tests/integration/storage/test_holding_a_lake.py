"""A lake in a bucket has one connector at a time, whichever home it has."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.lake.equality import assert_equal, execute
from tests.postgres import wait_until
from tests.running import Running, connector_of, running
from tests.s3 import S3Server

from tailrace.connector.events import TableChanged
from tailrace.errors import DefiniteError, LeaseLostError
from tailrace.lake.home import LEASE, LakeHome
from tailrace.model.lake_address import BucketLake
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings, SnapshotMode
from tailrace.source.kinds import source_of
from tailrace.storage.bucket import Bucket

ORDERS = "public.orders"
SETUP = """
create table orders (id int primary key, total int);
insert into orders select n, n from generate_series(1, 100) n;
"""
HOLD = """
import sys
from pathlib import Path
from tailrace.lake.home import LakeHome
from tailrace.model.lake_address import BucketLake

url, home, *options = sys.argv[1:]
lake = BucketLake(url, tuple(tuple(each.split("=", 1)) for each in options), Path(home))
with LakeHome.create(lake).locked():
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def lake_of(s3: S3Server, home: Path, **options: str) -> BucketLake:
    return BucketLake(f"{s3.make_bucket(uuid.uuid4().hex)}/shop", tuple({**s3.options, **options}.items()), home)


def test_a_second_connector_is_refused_while_one_has_the_lake(database: str, s3: S3Server, tmp_path: Path) -> None:
    execute(database, SETUP)
    lake = lake_of(s3, tmp_path / "home", lease_seconds="1.5")
    source, elsewhere = source_of(database), replace(lake, home=tmp_path / "elsewhere")
    with running(ConnectorSettings(lake), source) as run:
        run.catch_up()
        second = connector_of(ConnectorSettings(elsewhere, snapshot_mode=SnapshotMode.WHEN_NEEDED), source)
        second.start()
        with pytest.raises(DefiniteError, match=r"in use by another tailrace \(pid \d+ on "):
            second.wait(60)
        assert not LakeHome(elsewhere).is_here, "without when_needed it is refused the next time, too"
        execute(database, "update orders set total = total + 1")
        run.catch_up()
        assert_equal(database, lake, ORDERS)


def test_a_run_ends_when_another_has_the_lake_and_no_table_is_at_fault(
    database: str, s3: S3Server, tmp_path: Path
) -> None:
    execute(database, SETUP)
    lake = lake_of(s3, tmp_path / "home", lease_seconds="1.5")
    run = Running(ConnectorSettings(lake), source_of(database))
    run.catch_up()
    storage = LakeHome(lake).storage
    terms = json.loads(storage.get(LEASE))
    # As one does that has watched it for long enough.
    taken = {**terms, "number": terms["number"] + 1, "session": "another", "holder": "another"}
    storage.put(LEASE, json.dumps(taken).encode())

    def has_ended() -> bool:
        execute(database, "update orders set total = total + 1")
        return run.connector.wait(0.2)

    with pytest.raises(LeaseLostError, match=r"the lease was taken by another tailrace \(another\)"):
        wait_until(has_ended)
    assert {record.state for record in LakeHome(lake).tables.load().values()} == {TableState.LIVE}
    assert not any(isinstance(event, TableChanged) and event.record.reason for event in run.events)
    assert json.loads(storage.get(LEASE)) == taken


def test_a_home_whose_process_was_killed_has_its_lake_again_at_once(s3: S3Server, tmp_path: Path) -> None:
    lake = lake_of(s3, tmp_path / "home")
    options = [f"{name}={value}" for name, value in lake.options]
    command = [sys.executable, "-c", HOLD, lake.address, str(lake.home), *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        begun = time.monotonic()
        process.kill()
        process.wait()
    home = LakeHome(lake)
    with home.locked():
        home.storage.put("_tailrace/there", b"")
    assert time.monotonic() - begun < 20
    with pytest.raises(LeaseLostError, match="was given back"):
        home.storage.put("_tailrace/there", b"")


@pytest.mark.parametrize("seconds", ["0.5", "soon", "nan"])
def test_a_lease_that_cannot_be_kept_is_refused(seconds: str) -> None:
    with pytest.raises(DefiniteError, match="lease_seconds cannot have this value"):
        Bucket.of("s3://bucket/shop", {"lease_seconds": seconds})
