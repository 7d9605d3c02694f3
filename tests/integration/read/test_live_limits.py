"""What a live read takes: of the tables that a query names alone, and of changes no more than memory should hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from tests.doors.script import Insert, Script, Update
from tests.doors.scripted import ScriptedSource
from tests.running import running

import tailrace
from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.model.table_state import TableState
from tailrace.read.cut import cut_by
from tailrace.read.duckdb import DuckDBReadEngine, connect
from tailrace.settings import ConnectorSettings
from tailrace.source import kinds

ORDERS, LINES = "shop.orders", "shop.lines"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """With a change of one table, and many of the other, that are not published."""
    kinds.register("scripted", "tests.doors.scripted:ScriptedSource")
    script, lake = Script(tmp_path / "shop.jsonl"), tmp_path / "lake"
    for table in (ORDERS, LINES):
        script.create_table(table, {"id": "bigint", "note": "string"}, key=["id"])
        script.transaction([Insert(table, {"id": n, "note": "first"}) for n in range(100)])
    source = ScriptedSource(str(script.path))
    with running(ConnectorSettings(lake, publish_every_seconds=3600), source) as run:
        run.wait_for_state(ORDERS, TableState.LIVE)
        run.wait_for_state(LINES, TableState.LIVE)
        script.transaction([Update(ORDERS, (1,), {"note": "second"})])
        script.transaction([Update(LINES, (n,), {"note": "second" * 100}) for n in range(100)])
        run.wait_for_live_reads()
    return lake


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with connect(is_private=True) as connection:
        yield connection


def test_more_unpublished_changes_than_memory_should_hold_are_an_error_of_who_asks_for_their_table(
    lake: Path, connection: duckdb.DuckDBPyConnection
) -> None:
    narrow = DuckDBReadEngine(connection, tail_bytes_max=20_000)
    cut = cut_by(narrow, LakeHome.find(lake))
    assert cut.sql("select count(*) from orders where note = 'second'").fetchall() == [(1,)]
    with pytest.raises(DefiniteError, match=r"table shop\.lines has more unpublished changes") as caught:
        cut.sql("select count(*) from lines")
    assert "--published" in str(caught.value.hint)
    published = cut_by(narrow, LakeHome.find(lake), published=True)
    assert published.sql("select count(*) from lines where note = 'first'").fetchall() == [(100,)]
    cut = tailrace.cut(connection, lake, register=False)
    assert cut.sql("select count(*) from lines where note <> 'first'").fetchall() == [(100,)]


def test_only_the_tables_that_a_query_names_are_opened(lake: Path, connection: duckdb.DuckDBPyConnection) -> None:
    # Whoever opens the other table stumbles over this.
    commit = min((lake / "shop" / "lines" / "_delta_log").glob("*.json"))
    commit.unlink()
    commit.mkdir()
    cut = tailrace.cut(connection, lake, register=False)
    assert cut.sql("select count(*) from orders").fetchall() == [(100,)]
    assert tailrace.arrow(lake, ORDERS).num_rows == 100
    with pytest.raises(IsADirectoryError):
        cut.register()
