"""A standby as the source: the lake equals it, through the first copy, changes, definitions, a gap and a promotion."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from tests.integration.lake.equality import assert_equal, execute
from tests.running import connector_of
from tests.standby import Pair, pair_of

from tailrace.connector.events import Event, TroubleChanged
from tailrace.errors import DefiniteError, GapError
from tailrace.lake.home import LakeHome
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings, SnapshotMode
from tailrace.source.postgres.source import PostgresSource

TABLES = ("public.a", "public.b")
LIVE = dict.fromkeys(TABLES, TableState.LIVE)


@pytest.fixture(scope="module", params=[pytest.param(16, marks=pytest.mark.proof), 18])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    with pair_of(request.param) as made:
        made.run(
            "create table a (id int primary key, v text); create table b (id int primary key, v text)",
            "insert into a select n, 'first' from generate_series(1, 200) n; insert into b values (1, 'one')",
        )
        made.catch_up()
        yield made


def sync(pair: Pair, settings: ConnectorSettings, source: PostgresSource) -> dict[str, TableState]:
    """One run. What it asks a person to do on the primary is done."""
    connector = connector_of(settings, source)

    def obey(event: Event) -> None:
        if isinstance(event, TroubleChanged) and event.hint and event.hint.startswith("on the primary: "):
            pair.run(event.hint.removeprefix("on the primary: "))

    connector.subscribe(obey)
    connector.start()
    assert connector.wait(120)
    return {str(table): record.state for table, record in connector.tables().items()}


def test_a_lake_follows_a_standby_and_continues_after_it_was_promoted(pair: Pair, tmp_path: Path) -> None:
    dsn, settings = pair.standby.dsn(), ConnectorSettings(tmp_path / "lake", once=True, window_rows=50)
    with pytest.raises(DefiniteError, match="a standby, on which no publication can be made") as caught:
        PostgresSource(dsn).claim(None)
    assert "on its primary: create publication tailrace for table" in (caught.value.hint or "")
    pair.run("create publication tailrace for table a, b with (publish_via_partition_root = true)")
    pair.catch_up()
    source = PostgresSource(dsn, publication="tailrace")
    for statements in (
        "select 1",
        "update a set v = 'second' where id < 10; delete from a where id = 20; insert into b values (2, 'two')",
        "alter table a add column more int default 5; insert into a values (300, 'new shape', 1)",
    ):
        pair.run(statements)
        pair.catch_up()
        assert sync(pair, settings, source) == LIVE
        assert_equal(dsn, settings.lake, *TABLES)

    record = LakeHome(settings.lake).source()
    assert record is not None
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("select pg_drop_replication_slot(%s)", [record.claim["slot"]])
    pair.run("update a set v = 'lost' where id between 30 and 40")
    pair.catch_up()
    with pytest.raises(GapError, match="is gone"):
        sync(pair, settings, source)
    needed = replace(settings, snapshot_mode=SnapshotMode.WHEN_NEEDED)
    assert sync(pair, needed, source) == LIVE
    assert_equal(dsn, settings.lake, *TABLES)

    copies = [each.copy for each in LakeHome(settings.lake).tables.load().values()]
    pair.run("insert into b values (3, 'before the promotion')")
    pair.catch_up()
    pair.promote()
    execute(dsn, "update b set v = 'promoted' where id = 1; delete from a where id > 150")
    assert sync(pair, settings, source) == LIVE
    assert_equal(dsn, settings.lake, *TABLES)
    assert [each.copy for each in LakeHome(settings.lake).tables.load().values()] == copies
