"""Copies by windows, disturbed at the worst moment: between the reading of some rows and their place in the lake."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.doors.disturbed import DisturbedSource
from tests.doors.script import Alter, Insert, Script, Update
from tests.doors.scripted import ScriptedSource
from tests.postgres import wait_until
from tests.running import Running, running, sync_once

import tailrace
from tailrace.connector.signals.sender import lake_signals
from tailrace.lake.home import LakeHome
from tailrace.model.backoff import Backoff
from tailrace.model.signal import SignalState
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings, Retries, SnapshotMode, TaskSizes
from tailrace.source import kinds

ORDERS, TABLE = "shop.orders", TableId("shop", "orders")
ROWS = 30
CHUNK_ROWS = 5
"""With one reader, a window has two chunks."""


@pytest.fixture
def script(tmp_path: Path) -> Script:
    kinds.register("scripted", "tests.doors.scripted:ScriptedSource")
    script = Script(tmp_path / "shop.jsonl")
    script.create_table(ORDERS, {"id": "int", "note": "string"}, key=["id"])
    script.transaction([Insert(ORDERS, {"id": n, "note": "first"}) for n in range(ROWS)])
    return script


@pytest.fixture
def source(script: Script) -> DisturbedSource:
    return DisturbedSource(str(script.path))


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(
        tmp_path / "lake",
        once=True,
        publish_every_seconds=0.05,
        look_at_tables_seconds=0.1,
        snapshot_mode=SnapshotMode.INCREMENTAL,
        window_rows=CHUNK_ROWS,
        readers_max=1,
        retries=Retries(window=Backoff(0.01, 30.0)),
        sizes=TaskSizes(window_growth_max=1.0, window_seconds=600.0),
    )


def rows(lake: Path) -> list[dict[str, object]]:
    return tailrace.arrow(lake, ORDERS).sort_by("id").to_pylist()


def test_rows_that_have_to_be_read_again_are_not_passed_over_by_those_that_were_read_ahead(
    script: Script, source: DisturbedSource, settings: ConnectorSettings
) -> None:
    """The second of three windows has a shape that the table has no more when it is published."""

    def disturb(table: TableId, what: str, number: int) -> None:
        if (what, number) == ("read", 4):
            script.transaction([Alter(ORDERS, add={"later": "int"}), Update(ORDERS, (1,), {"later": 1})])

    source.disturbance.begin(disturb)
    assert sync_once(settings, source) == {ORDERS: TableState.LIVE}
    assert rows(settings.lake) == script.state(ORDERS)
    assert len(rows(settings.lake)) == ROWS


def test_rows_that_were_read_for_a_copy_are_not_taken_for_the_next_one(
    script: Script, source: DisturbedSource, settings: ConnectorSettings
) -> None:
    """With the last rows of a table, its copy would be whole."""
    with running(replace(settings, once=False), source) as run:
        run.wait_for_state(ORDERS, TableState.LIVE)

        def disturb(table: TableId, what: str, number: int) -> None:
            if (what, number) == ("read", 6):
                run.connector.resync(TABLE)
                wait_until(lambda: (record := run.connector.tables()[TABLE]).copy == 3 and record.definition, 20)

        source.disturbance.begin(disturb)
        run.connector.resync(TABLE)
        run.wait_for_state(ORDERS, TableState.LIVE, copy=3)
        run.catch_up()
        assert rows(settings.lake) == script.state(ORDERS)


def test_a_source_that_is_away_for_a_moment_is_no_error_of_the_table_that_was_to_be_read(
    script: Script, source: DisturbedSource, settings: ConnectorSettings
) -> None:
    def disturb(table: TableId, what: str, number: int) -> None:
        if (what, number) == ("plan", 2):
            with script.outage():
                ScriptedSource(str(script.path)).now()

    source.disturbance.begin(disturb)
    assert sync_once(settings, source) == {ORDERS: TableState.LIVE}
    assert source.disturbance.done[TABLE, "plan"] > 3, "it was planned again"
    assert rows(settings.lake) == script.state(ORDERS)


def states(run: Running) -> dict[str, SignalState]:
    return {each.signal.id: each.state for each in lake_signals(LakeHome(run.lake))}


def test_a_signal_whose_copy_another_one_replaced_ends_with_that_one(
    source: DisturbedSource, settings: ConnectorSettings
) -> None:
    seen: list[SignalState] = []
    with running(replace(settings, once=False), source) as run:
        run.wait_for_state(ORDERS, TableState.LIVE)

        def disturb(table: TableId, what: str, number: int) -> None:
            if (what, number) == ("read", 4):
                tailrace.signal(run.lake, "execute-snapshot", {"data-collections": [ORDERS]}, id="second")
            if (what, number) == ("read", 8):
                wait_until(lambda: states(run).get("second") is SignalState.RUNNING, 20)
                tailrace.signal(run.lake, "log", {"message": "all have been looked at once more"}, id="third")
                wait_until(lambda: states(run).get("third") is SignalState.DONE, 20)
                seen.append(states(run)["first"])

        source.disturbance.begin(disturb)
        tailrace.signal(run.lake, "execute-snapshot", {"data-collections": [ORDERS]}, id="first")
        wait_until(lambda: set(states(run).values()) == {SignalState.DONE}, 60)
        assert run.connector.tables()[TABLE].copy == 3
    assert seen == [SignalState.RUNNING]


def test_many_rows_that_are_equal_in_a_surrogate_key_are_not_taken_for_the_last_ones(
    script: Script, source: DisturbedSource, settings: ConnectorSettings
) -> None:
    script.create_table("shop.parts", {"id": "int", "number": "int"}, key=["id"])
    script.transaction([Insert("shop.parts", {"id": n, "number": n // 12}) for n in range(ROWS)])
    sync_once(settings, source)
    data = {"data-collections": ["shop.parts"], "surrogate-key": "number"}
    tailrace.signal(settings.lake, "execute-snapshot", data, id="again")
    sync_once(settings, source)
    assert LakeHome(settings.lake).tables.load()[TableId("shop", "parts")].copy == 2
    assert tailrace.arrow(settings.lake, "shop.parts").sort_by("id").to_pylist() == script.state("shop.parts")


def staged(lake: Path) -> list[Path]:
    folder = LakeHome(lake).windows
    return list(folder.iterdir()) if folder.exists() else []


def test_a_disk_that_is_full_while_rows_are_read_holds_the_copy_up_for_a_while(
    script: Script, source: DisturbedSource, settings: ConnectorSettings
) -> None:
    found: list[list[Path]] = []

    def disturb(table: TableId, what: str, number: int) -> None:
        if what == "read" and 3 <= number <= 8:
            raise OSError(28, "No space left on device")
        if what == "plan":
            found.append(staged(settings.lake))

    source.disturbance.begin(disturb)
    assert sync_once(settings, source) == {ORDERS: TableState.LIVE}
    assert rows(settings.lake) == script.state(ORDERS)
    assert max(map(len, found)) <= 2, "what could not be read leaves no files"
    assert staged(settings.lake) == []


def test_what_is_wrong_with_the_rows_of_one_table_stops_that_table_alone(
    script: Script, source: DisturbedSource, settings: ConnectorSettings
) -> None:
    script.create_table("shop.parts", {"id": "int"}, key=["id"])
    script.transaction([Insert("shop.parts", {"id": n}) for n in range(ROWS)])

    def disturb(table: TableId, what: str, number: int) -> None:
        if (table, what) == (TABLE, "read"):
            raise ValueError("no one has foreseen this")

    source.disturbance.begin(disturb)
    assert sync_once(settings, source) == {ORDERS: TableState.ERRORED, "shop.parts": TableState.LIVE}
    assert "no one has foreseen this" in (LakeHome(settings.lake).tables.load()[TABLE].reason or "")


def test_much_that_is_committed_while_rows_are_read_is_waited_for_and_no_error(
    script: Script, source: DisturbedSource, settings: ConnectorSettings
) -> None:
    """However often."""

    def disturb(table: TableId, what: str, number: int) -> None:
        if what == "read" and number % 2 == 0 and number <= 20:
            script.transaction([Update(ORDERS, (1,), {"note": f"the {number}th"})])

    source.disturbance.begin(disturb)
    # No task may hold any change. What a batch has of the table is dealt out then; what a window has missed is not.
    assert sync_once(replace(settings, sizes=TaskSizes(decoded_bytes_max=0)), source) == {ORDERS: TableState.LIVE}
    assert rows(settings.lake) == script.state(ORDERS)
    assert source.disturbance.done[TABLE, "read"] > 20
    assert staged(settings.lake) == []


def test_small_chunks_of_a_fixed_size_become_more_in_a_window_and_few_files(
    script: Script, source: DisturbedSource, settings: ConnectorSettings
) -> None:
    assert sync_once(replace(settings, window_rows=1, sizes=TaskSizes()), source) == {ORDERS: TableState.LIVE}
    assert source.disturbance.done[TABLE, "read"] == ROWS
    assert source.disturbance.done[TABLE, "plan"] <= 4, "2, 8 and 20 chunks"
    assert len(list((settings.lake / "shop" / "orders").rglob("*.parquet"))) <= 4
