"""What is deleted of a lake's past is what no kept cut needs, at whatever moment we die. Without Spark."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from tests.doors.damage import zero
from tests.doors.script import Delete, Insert, Script, Update
from tests.doors.scripted import ScriptedSource
from tests.journey import run
from tests.running import running, sync_once

import tailrace
from tailrace.cli.lake.maintain import MaintainCommand, run_maintain
from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.lake.retention import Retention
from tailrace.model.table_state import TableState
from tailrace.read.duckdb import connect
from tailrace.settings import ConnectorSettings
from tailrace.source import kinds

ORDERS = "shop.orders"
TRANSACTIONS = 40
State = list[dict[str, Any]]


def change(script: Script, number: int) -> None:
    script.transaction(
        [
            Insert(ORDERS, {"id": 100 + number, "note": "new"}),
            Update(ORDERS, (number % 10,), {"note": f"in {number}"}),
            *([Delete(ORDERS, (99 + number,))] if number % 3 == 1 and number > 1 else []),
        ]
    )


def new_script(path: Path) -> Script:
    kinds.register("scripted", "tests.doors.scripted:ScriptedSource")
    script = Script(path)
    script.create_table(ORDERS, {"id": "bigint", "note": "string"}, key=["id"])
    script.transaction([Insert(ORDERS, {"id": n, "note": "first"}) for n in range(20)])
    return script


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Script, Path, dict[int, State]]:
    """A lake with a cut for each of many transactions, and what each of them showed."""
    folder = tmp_path_factory.mktemp("upkeep")
    script, lake = new_script(folder / "shop.jsonl"), folder / "lake"
    settings = ConnectorSettings(lake, once=True, batch_bytes_max=1)
    sync_once(settings, ScriptedSource(str(script.path)))
    states = {0: script.state(ORDERS)}
    for number in range(1, TRANSACTIONS):
        change(script, number)
        states[number] = script.state(ORDERS)
    sync_once(settings, ScriptedSource(str(script.path)))
    assert len(LakeHome(lake).cuts.all()) >= TRANSACTIONS
    return script, lake, states


@pytest.fixture
def lake(published: tuple[Script, Path, dict[int, State]], tmp_path: Path) -> Path:
    """Its cuts are some minutes old, fifty in a second, and no checkpoint has been written."""
    lake = Path(shutil.copytree(published[1], tmp_path / "lake"))
    for checkpoint in (lake / "shop" / "orders" / "_delta_log").glob("*checkpoint*"):
        checkpoint.unlink()
    cuts, begin_us = LakeHome(lake).cuts, (int(time.time()) - 300) * 1_000_000 + 5_000
    cuts.replace([replace(cut, published_us=begin_us + 20_000 * number) for number, cut in enumerate(cuts.all())])
    return lake


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(is_private=True) as connection:
        yield connection


def rows(found: Any) -> State:
    return sorted(found.to_arrow_table().to_pylist(), key=lambda row: row["id"])


def assert_every_cut_is_what_it_was(connection: duckdb.DuckDBPyConnection, lake: Path, states: dict[int, State]) -> int:
    """How many cuts there are."""
    cuts = LakeHome(lake).cuts.all()
    for each in cuts:
        cut = tailrace.cut(connection, lake, as_of=each.position, register=False)
        assert (cut.seq, rows(cut.tables[ORDERS])) == (each.seq, states[each.seq])
    return len(cuts)


def files(lake: Path) -> dict[str, int]:
    table = lake / "shop" / "orders"
    patterns = {"rows": "*.parquet", "vectors": "*.bin", "commits": "_delta_log/*.json"}
    return {name: len(list(table.glob(pattern))) for name, pattern in patterns.items()}


THIN = ("--retain", "1h", "--retain-all", "0.1s")


def forget_everything(lake: Path) -> None:
    """Keep only the newest cut; then nothing may be there that neither it nor the newest version needs."""
    run_maintain(lake, MaintainCommand(Retention(0, 0)))
    (cut,) = LakeHome(lake).cuts.all()
    table = lake / "shop" / "orders"
    named = set()
    for version in (cut.tables[ORDERS].version, DeltaTable(table).version()):
        added = pa.table(DeltaTable(table, version=version).get_add_actions())
        named |= set(added.column("path").to_pylist())
    assert {path.name for path in table.glob("*.parquet")} == named
    assert files(lake)["commits"] <= 3
    assert files(lake)["vectors"] <= files(lake)["rows"]


def test_kept_cuts_stay_exact_the_rest_goes_and_syncing_continues(
    published: tuple[Script, Path, dict[int, State]], lake: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    script, _, states = published
    before = files(lake)
    preview = run("maintain", str(lake), *THIN, "--dry-run")
    assert preview.returncode == 0, preview.stderr
    assert "would be forgotten" in preview.stdout
    assert (files(lake), len(LakeHome(lake).cuts.all())) == (before, TRANSACTIONS)
    held = tailrace.cut(connection, lake, as_of=LakeHome(lake).cuts.all()[30].position, register=False)
    relation = held.tables[ORDERS]

    done = run("maintain", str(lake), *THIN)
    assert done.returncode == 0, done.stderr
    assert assert_every_cut_is_what_it_was(connection, lake, states) == TRANSACTIONS // 5
    assert files(lake)["commits"] < before["commits"]

    forget_everything(lake)
    assert assert_every_cut_is_what_it_was(connection, lake, states) == 1
    with pytest.raises(duckdb.Error):
        relation.fetchall()
    with pytest.raises(DefiniteError, match="no cut as old"):
        tailrace.cut(connection, lake, as_of=held.position)

    change(script, 1001)
    settings = ConnectorSettings(lake, once=True)
    assert sync_once(settings, ScriptedSource(str(script.path))) == {ORDERS: TableState.LIVE}
    assert rows(tailrace.cut(connection, lake, published=True, register=False).tables[ORDERS]) == script.state(ORDERS)
    assert LakeHome(lake).tables.load()[LakeHome(lake).table_named(ORDERS)].copy == 1, "it was not copied again"


@pytest.mark.parametrize(
    "point",
    [
        "cuts.replaced",
        "delta.checkpoint",
        "delta.checkpoint.hint",
        "delta.prune.files",
        "delta.prune.commit:7",
    ],
)
def test_killed_at_any_step_every_cut_is_still_what_it_was_and_the_next_time_ends_the_work(
    published: tuple[Script, Path, dict[int, State]], lake: Path, connection: duckdb.DuckDBPyConnection, point: str
) -> None:
    states = published[2]
    assert run("maintain", str(lake), *THIN, TAILRACE_FAILPOINT=point).returncode == -signal.SIGKILL
    assert_every_cut_is_what_it_was(connection, lake, states)
    forget_everything(lake)
    assert assert_every_cut_is_what_it_was(connection, lake, states) == 1


def test_a_torn_checkpoint_is_put_aside_and_a_history_that_begins_late_goes_back_to_its_last_kept_version(
    published: tuple[Script, Path, dict[int, State]], lake: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    script = published[0]
    assert run("maintain", str(lake), *THIN).returncode == 0
    log = lake / "shop" / "orders" / "_delta_log"
    assert not (log / f"{0:020d}.json").exists()
    for damaged in (max(log.glob("*.checkpoint.parquet")), max(log.glob("*.json"))):
        zero(damaged)
    assert sync_once(ConnectorSettings(lake, once=True), ScriptedSource(str(script.path))) == {ORDERS: TableState.LIVE}
    assert list(LakeHome(lake).damaged_folders())
    assert LakeHome(lake).tables.load()[LakeHome(lake).table_named(ORDERS)].copy == 1, "it was not copied again"
    assert rows(tailrace.cut(connection, lake, published=True, register=False).tables[ORDERS]) == script.state(ORDERS)


def test_a_running_sync_does_it_itself_and_lets_no_one_else(
    tmp_path: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    script, lake = new_script(tmp_path / "shop.jsonl"), tmp_path / "lake"
    settings = ConnectorSettings(
        lake, publish_every_seconds=0.01, batch_bytes_max=1, retain_seconds=1.0, retain_all_seconds=0.2
    )
    with running(settings, ScriptedSource(str(script.path))) as sync:
        for number in range(1, 100):
            change(script, number)
        sync.catch_up()
        refused = run("maintain", str(lake))
        assert refused.returncode == 2
        assert "a running sync maintains its lake itself" in refused.stderr
        sync.wait_for(lambda: len(LakeHome(lake).cuts.all()) < 50)
    sync_once(ConnectorSettings(lake, once=True, retain_seconds=0, retain_all_seconds=0), sync.source)
    assert len(LakeHome(lake).cuts.all()) == 1
    assert files(lake)["commits"] < 50
    assert rows(tailrace.cut(connection, lake, register=False).tables[ORDERS]) == script.state(ORDERS)
