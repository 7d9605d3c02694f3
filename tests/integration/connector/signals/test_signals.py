"""A signal table beside tables that are copied: its rows reach the desk through the log, and no cut has it."""

from __future__ import annotations

from pathlib import Path

from tests.integration.lake.equality import assert_equal, execute
from tests.postgres import wait_until
from tests.running import running

from tailrace.connector.signals.sender import lake_signals
from tailrace.lake.home import LakeHome
from tailrace.model.signal import SignalState
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

SIGNALS = TableId("public", "signals")


def test_a_signal_table_without_key_is_followed_and_not_copied(database: str, tmp_path: Path) -> None:
    execute(database, "create table t (id int primary key); create table signals (id text, type text, data text)")
    settings = ConnectorSettings(tmp_path / "lake", publish_every_seconds=0.01, signal_table=str(SIGNALS))
    source = source_of(database, signal_table=str(SIGNALS))
    with running(settings, source) as run:
        run.catch_up()
        execute(database, """insert into signals values ('a', 'log', '{"message": "m"}'); insert into t values (1)""")
        run.catch_up()
        wait_until(lambda: [each.state for each in lake_signals(LakeHome(run.lake))] == [SignalState.DONE])
        assert_equal(database, run.lake, "public.t")
        states = {str(table): record.state for table, record in run.connector.tables().items()}
        assert states == {"public.t": TableState.LIVE}
