"""A server or a slot that is set back to an earlier state: nothing is left out in silence, and nothing comes twice."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from demo.embedded import EmbeddedPostgres
from tests.integration.postgres.capturing import Capture
from tests.integration.postgres.test_capture import ids, reaches_now
from tests.postgres import wait_until
from tests.running import connector_of, sync_once

import tailrace
from tailrace.errors import GapError
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId
from tailrace.settings import ConnectorSettings, SnapshotMode
from tailrace.source.door.values import Claim
from tailrace.source.postgres.source import PostgresSource

T = TableId("public", "t")


class Server:
    """A server whose disk can be copied and put back."""

    def __init__(self, server: EmbeddedPostgres) -> None:
        self.embedded = server
        self._kept = server.data_dir.with_name("kept")

    def keep(self) -> None:
        self.embedded.stop()
        subprocess.run(["cp", "-a", self.embedded.data_dir, self._kept], check=True)
        self.embedded.start()

    def put_back(self) -> None:
        self.embedded.stop()
        shutil.rmtree(self.embedded.data_dir)
        self._kept.rename(self.embedded.data_dir)
        self.embedded.start()

    def run(self, *statements: str) -> None:
        with psycopg.connect(self.embedded.dsn(), autocommit=True) as conn:
            for statement in statements:
                conn.execute(statement)

    def write_past(self, source: PostgresSource, ordinal: int) -> None:
        while source.now().ordinal <= ordinal:
            self.run("insert into busy select n from generate_series(1, 100) n")


@pytest.fixture
def server() -> Iterator[Server]:
    with TemporaryDirectory(prefix="tailrace-") as folder, EmbeddedPostgres(Path(folder) / "data") as embedded:
        made = Server(embedded)
        made.run("create table t (id int primary key, body text); create table busy (id int)")
        yield made


@pytest.fixture
def source(server: Server) -> PostgresSource:
    return PostgresSource(server.embedded.dsn())


@pytest.fixture
def claim(source: PostgresSource) -> Claim:
    made = source.claim(None)
    source.prepare(made, [T], None)
    return made


def logged(server: Server, source: PostgresSource, claim: Claim, log: Path, *statements: str) -> int:
    """Run them and log what they do. Where the log ends then."""
    with Capture(source, claim, log) as capture:
        server.run(*statements)
        reaches_now(capture, source)
        return int(capture.head.ordinal)


def refused(source: PostgresSource, claim: Claim, log: Path) -> GapError:
    with Capture(source, claim, log) as capture:
        wait_until(lambda: capture.has_ended)
    assert isinstance(capture.error, GapError)
    assert "--snapshot-mode when_needed" in (capture.error.hint or "")
    return capture.error


def test_a_server_that_has_less_than_the_log_is_refused_before_anything_is_left_out(
    server: Server, source: PostgresSource, claim: Claim, tmp_path: Path
) -> None:
    logged(server, source, claim, tmp_path / "log", "insert into t values (1)")
    server.keep()
    end = logged(server, source, claim, tmp_path / "log", "insert into t values (2)")
    server.put_back()
    with pytest.raises(GapError, match="the server was set back"):
        source.require_continuity(claim, SourcePosition(end))
    error = refused(source, claim, tmp_path / "log")
    assert f"our log has changes up to {source.format(SourcePosition(end))}: the server was set back" in error.message


def test_a_server_that_was_set_back_and_wrote_other_changes_since_is_found_out_each_time(
    server: Server, source: PostgresSource, claim: Claim, tmp_path: Path
) -> None:
    logged(server, source, claim, tmp_path / "log", "insert into t values (1)")
    server.keep()
    end = logged(server, source, claim, tmp_path / "log", "insert into t values (2)", "insert into t values (3)")
    server.put_back()
    server.run("insert into t values (20), (21)")
    server.write_past(source, end)
    for _ in range(2):
        assert "does not have the transaction that our log has at" in refused(source, claim, tmp_path / "log").message
    assert ids(source, tmp_path / "log") == [1, 2, 3]


def test_a_server_that_was_set_back_to_after_the_last_change_loses_none_of_its_new_ones(
    server: Server, source: PostgresSource, claim: Claim, tmp_path: Path
) -> None:
    logged(server, source, claim, tmp_path / "log", "insert into t values (1)")
    server.keep()
    end = logged(server, source, claim, tmp_path / "log", "insert into busy select n from generate_series(1, 9999) n")
    server.put_back()
    server.run("insert into t values (2)")
    assert source.now().ordinal < end
    server.write_past(source, end)
    logged(server, source, claim, tmp_path / "log", "insert into t values (3)")
    assert ids(source, tmp_path / "log") == [1, 2, 3]


def test_a_slot_that_was_moved_back_sends_again_what_the_log_has_and_that_changes_nothing(
    server: Server, source: PostgresSource, claim: Claim, tmp_path: Path
) -> None:
    slot, copy = claim["slot"], "select pg_copy_logical_replication_slot('{}', '{}')"
    server.run(copy.format(slot, "earlier"))
    logged(server, source, claim, tmp_path / "log", "insert into t values (1)", "insert into t values (2)")
    server.run(f"select pg_drop_replication_slot('{slot}')", copy.format("earlier", slot))
    logged(server, source, claim, tmp_path / "log", "insert into t values (3)")
    assert ids(source, tmp_path / "log") == [1, 2, 3]


def test_a_run_that_is_to_end_finds_out_a_server_that_was_set_back_and_wrote_exactly_as_much_again(
    server: Server, source: PostgresSource, tmp_path: Path
) -> None:
    settings = ConnectorSettings(tmp_path / "lake", tables=[str(T)], once=True)
    sync_once(settings, source)
    server.keep()
    server.run("insert into t values (1, 'never')")
    sync_once(settings, source)
    server.put_back()
    # As long as the other one, so that the WAL ends where the log does.
    server.run("insert into t values (1, 'other')")
    for _ in range(2):
        connector = connector_of(settings, PostgresSource(server.embedded.dsn()))
        connector.start()
        with pytest.raises(GapError):
            connector.wait(60)
    repairing = replace(settings, snapshot_mode=SnapshotMode.WHEN_NEEDED)
    sync_once(repairing, PostgresSource(server.embedded.dsn()))
    assert tailrace.arrow(settings.lake, str(T), published=True).to_pylist() == [{"id": 1, "body": "other"}]
