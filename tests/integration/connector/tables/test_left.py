"""A start after a run that ended in order: what is still as it was left is not looked at again. All else is."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from deltalake import DeltaTable as Independent
from tests.integration.lake.equality import assert_published, execute
from tests.running import connector_of, running, sync_once

from tailrace.connector.events import StateChanged
from tailrace.connector.tables.source_check import TableLook
from tailrace.errors import GapError
from tailrace.lake.delta.log import recovery
from tailrace.lake.home import LakeHome
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

TABLES = ("public.a", "public.b")


class Seen:
    """What starts have looked at closely."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.recovered = self.looks = 0
        self._count(monkeypatch, recovery, "recover")
        self._count(monkeypatch, TableLook, "take")

    def _count(self, monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> None:
        done: Callable[..., object] = getattr(owner, name)

        def counted(*arguments: object, **others: object) -> object:
            if name == "recover":
                self.recovered += 1
            else:
                self.looks += 1
            return done(*arguments, **others)

        monkeypatch.setattr(owner, name, counted)

    def of(self, run: Callable[[], object]) -> tuple[int, int]:
        """Tables of the lake, and looks at those of the source, in one run."""
        self.recovered = self.looks = 0
        run()
        return self.recovered, self.looks


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(tmp_path / "lake", once=True)


@pytest.fixture
def sync(database: str, settings: ConnectorSettings) -> Callable[[], object]:
    """Two tables, and a lake that three runs have left in order."""
    execute(database, "create table a (id int primary key, v text); create table b (like a including all)")
    execute(database, "insert into a values (1, 'x'); insert into b values (1, 'y')")
    for _ in range(3):
        sync_once(settings, source_of(database))
    return lambda: sync_once(settings, source_of(database))


@pytest.fixture
def seen(sync: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> Seen:
    return Seen(monkeypatch)


def test_what_was_left_in_order_is_not_looked_at_and_changes_still_arrive(
    database: str, settings: ConnectorSettings, sync: Callable[[], object], seen: Seen
) -> None:
    assert seen.of(sync) == (0, 0)
    execute(database, "update a set v = 'changed'; insert into a values (2, 'new')")
    assert seen.of(sync) == (0, 0)
    assert_published(database, settings.lake, TABLES)
    assert seen.of(sync) == (0, 0)


def test_a_run_that_died_has_everything_looked_at(
    database: str, settings: ConnectorSettings, sync: Callable[[], object], seen: Seen
) -> None:
    """It had taken the file away when it began."""
    LakeHome.find(settings.lake).runs.left.take()
    assert seen.of(sync) == (2, 1)
    assert seen.of(sync) == (0, 0)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"tables": 3}', b'{"tables": {"public.a": {}}}'])
def test_a_damaged_file_counts_as_none(
    settings: ConnectorSettings, sync: Callable[[], object], seen: Seen, content: bytes
) -> None:
    (settings.lake / "_tailrace" / "left.json").write_bytes(content)
    assert seen.of(sync) == (2, 1)


def test_a_file_that_comes_back_is_believed_only_as_far_as_it_is_true(
    database: str, settings: ConnectorSettings, sync: Callable[[], object], seen: Seen, tmp_path: Path
) -> None:
    path = settings.lake / "_tailrace" / "left.json"
    shutil.copy2(path, tmp_path / "old.json")
    execute(database, "update a set v = 'changed'")
    sync()
    shutil.copy2(tmp_path / "old.json", path)
    assert seen.of(sync) == (1, 0)
    assert_published(database, settings.lake, TABLES)


def test_a_table_that_another_has_written_to_is_looked_at(
    database: str, settings: ConnectorSettings, sync: Callable[[], object], seen: Seen
) -> None:
    Independent(settings.lake / "public" / "b").delete()
    assert seen.of(sync) == (1, 0)


def test_a_table_that_was_put_back_from_an_older_copy_is_copied_again(
    database: str, settings: ConnectorSettings, sync: Callable[[], object], tmp_path: Path
) -> None:
    shutil.copytree(settings.lake / "public" / "a", tmp_path / "backup")
    execute(database, "update a set v = 'changed'")
    sync()
    shutil.rmtree(settings.lake / "public" / "a")
    shutil.copytree(tmp_path / "backup", settings.lake / "public" / "a")
    sync()
    assert_published(database, settings.lake, TABLES)


@pytest.mark.parametrize("pattern", ["part-*.parquet", "_delta_log/*0.json"])
def test_a_table_that_has_lost_a_file_is_looked_at(
    database: str, settings: ConnectorSettings, sync: Callable[[], object], seen: Seen, pattern: str
) -> None:
    """Its newest commit is as it was."""
    execute(database, "update b set v = 'changed'")
    sync()
    max(settings.lake.glob(f"public/b/{pattern}"), key=lambda path: path.stat().st_mtime_ns).unlink()
    assert seen.of(sync)[0] == 1
    assert_published(database, settings.lake, TABLES)


@pytest.mark.parametrize(
    "script",
    [
        "alter table a add column w int default 7",
        "create table c (id int primary key)",
        "drop table b",
        "truncate a",
        "do $$ begin execute format('alter publication %I drop table a', (select pubname from pg_publication)); end $$",
    ],
)
def test_what_became_of_the_sources_tables_meanwhile_is_found(
    database: str, settings: ConnectorSettings, sync: Callable[[], object], seen: Seen, script: str
) -> None:
    execute(database, f"{script}; update a set v = v || '!'")
    assert seen.of(sync)[1] >= 1
    with psycopg.connect(database) as conn:
        names = [f"public.{name}" for (name,) in conn.execute("select relname from pg_class where relname ~ '^[abc]$'")]
    assert_published(database, settings.lake, names)


def test_what_a_run_found_and_had_no_time_to_follow_is_found_again(
    database: str, settings: ConnectorSettings, sync: Callable[[], object]
) -> None:
    """Stopped after its first look, before anything was published."""
    execute(database, "alter table a add column w int")
    connector = connector_of(settings, source_of(database))
    connector.subscribe(lambda event: connector.stop() if isinstance(event, StateChanged) else None)
    connector.start()
    assert connector.wait(60)
    sync()
    assert_published(database, settings.lake, TABLES)


def test_another_choice_of_tables_is_looked_at(
    database: str, settings: ConnectorSettings, sync: Callable[[], object], seen: Seen
) -> None:
    assert seen.of(lambda: sync_once(replace(settings, exclude=("public.b",)), source_of(database)))[1] >= 1


def test_a_slot_that_is_gone_is_found_as_ever(database: str, sync: Callable[[], object]) -> None:
    execute(database, "select pg_drop_replication_slot(slot_name) from pg_replication_slots")
    with pytest.raises(GapError, match="is gone"):
        sync()


def test_a_table_that_is_copied_again_is_looked_at_first(
    database: str, settings: ConnectorSettings, sync: Callable[[], object], seen: Seen
) -> None:
    """Before its copy begins, so that it is copied beside the stream."""
    with running(replace(settings, once=False), source_of(database)) as run:
        run.connector.resync(TableId("public", "a"))
        run.wait_for_state("public.a", TableState.LIVE, copy=2)
    assert seen.looks >= 1
    assert_published(database, settings.lake, TABLES)
