"""A server that ends, however it ends, comes back with every connector at its target."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import psycopg
import pytest
from demo.embedded import EmbeddedPostgres
from tests.integration.lake.equality import assert_equal, execute
from tests.postgres import wait_until
from tests.running import captures
from tests.serving import config_for, process, serving

import tailrace
from tailrace.connector.events import StreamProgressed, TroubleChanged
from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.server.serving import ServerSettings, serve
from tailrace.server.supervisor.hub import Told


def published(lake: Path) -> int:
    return len(tailrace.arrow(lake, "public.t", published=True)) if LakeHome(lake).cuts.newest() else -1


def test_a_server_that_is_killed_comes_back_with_all_its_connectors(database: str, tmp_path: Path) -> None:
    """Its state is in the source's Postgres here, as it may be."""
    home, lake = tmp_path / "home", tmp_path / "home" / "lakes" / "runs"
    execute(database, "create schema app; create table t (id int primary key); insert into t values (1)")
    tables = {"table_include_list": r"public\.t"}
    with process(home, "--state-url", database) as first:
        first.create("runs", config_for(database, **tables))
        first.create("paused", config_for(database, **tables), initial_state="PAUSED")
        first.create("stopped", config_for(database, **tables), initial_state="PAUSED")
        first.ask("PUT", "/connectors/stopped/stop", status=204)
        wait_until(lambda: published(lake) == 1, 60)
        # A capture that dies is started again, and no one else notices.
        victim = captures(first.process.pid)[0].pid
        os.kill(victim, signal.SIGKILL)
        execute(database, "insert into t values (2)")
        wait_until(lambda: published(lake) == 2, 60)
        alone = [each.pid for each in psutil.Process(first.process.pid).children(recursive=True)]
        os.kill(first.process.pid, signal.SIGKILL)
        first.process.wait()
        wait_until(lambda: not any(map(psutil.pid_exists, alone)), 30)
    execute(database, "insert into t values (3)")
    with process(home, "--state-url", database) as second:
        states = {name: each["status"]["connector"]["state"] for name, each in _expanded(second).items()}
        assert set(states) == {"runs", "paused", "stopped"}
        assert (states["paused"], states["stopped"]) == ("PAUSED", "STOPPED")
        wait_until(lambda: published(lake) == 3, 60)
        second.process.send_signal(signal.SIGINT)
        assert second.process.wait(60) == 0
    assert_equal(database, lake, "public.t")
    assert not list(home.glob("server.db"))
    with psycopg.connect(database) as connection:
        found = connection.execute("select count(*) from pg_replication_slots where active").fetchone()
        assert found == (0,)


def _expanded(client: object) -> dict[str, dict[str, dict[str, dict[str, str]]]]:
    return client.ask("GET", "/connectors?expand=status")  # type: ignore[attr-defined, no-any-return]


def test_a_source_that_goes_away_and_comes_back_is_followed_again(tmp_path: Path) -> None:
    with TemporaryDirectory(prefix="tailrace-postgres-") as folder:
        source = EmbeddedPostgres(Path(folder) / "data")
        source.start()
        dsn = source.create_database("away")
        execute(dsn, "create table t (id int primary key); insert into t values (1)")
        with serving(tmp_path / "home") as server:
            server.create("shop", config_for(dsn))
            lake = server.supervisor.lake_home("shop").lake
            wait_until(lambda: published(lake) == 1, 60)
            told: list[Told] = []
            server.supervisor.hub.subscribe(lambda _, each: told.append(each))
            source.stop()
            # From this health knows that nothing gets further.
            wait_until(lambda: any(isinstance(each, TroubleChanged) and each.message for each in told), 30)
            wait_until(lambda: any(isinstance(each, StreamProgressed) and each.lag_bytes is None for each in told), 30)
            server.ask("POST", "/connectors/shop/restart", status=204)
            wait_until(lambda: "cannot connect" in server.status("shop")["connector"].get("trace", ""), 30)
            server.wait_for("shop", "RESTARTING")
            # What cannot be dropped now stays as it is, and so does what is wanted of it.
            refused = server.ask("DELETE", "/connectors/shop?drop_source=true", status=503)
            assert "cannot connect" in refused["message"]
            source.start()
            execute(dsn, "insert into t values (2)")
            wait_until(lambda: published(lake) == 2, 90)
            server.wait_for("shop", "RUNNING")
        source.stop()


def test_one_server_at_a_time_works_in_a_home(tmp_path: Path) -> None:
    with serving(tmp_path), pytest.raises(DefiniteError, match="another tailrace server"):
        serve(ServerSettings(tmp_path, port=0), lambda _: None)


def test_one_server_at_a_time_works_with_a_state_in_postgres(database: str, tmp_path: Path) -> None:
    with serving(tmp_path / "one", state_url=database) as server:
        with pytest.raises(DefiniteError, match="another tailrace server works with the state at postgresql"):
            serve(ServerSettings(tmp_path / "two", port=0, state_url=database), lambda _: None)
        server.create("shop", config_for(database), initial_state="STOPPED")
        # A lock whose session is lost is taken again, unless another server has it by then.
        lose = "select pg_terminate_backend(pid, 5000) from pg_locks where locktype = 'advisory' and database = "
        lose += "(select oid from pg_database where datname = current_database())"
        execute(database, lose)
        server.ask("PUT", "/connectors/shop/pause", status=202)
        with psycopg.connect(database, autocommit=True) as connection:
            found = connection.execute("select classid, objid from pg_locks where locktype = 'advisory'").fetchone()
            assert found is not None
            execute(database, lose)
            connection.execute("select pg_advisory_lock((%s::bigint << 32) + %s::bigint)", found)
            refused = server.ask("PUT", "/connectors/shop/stop", status=409)
            assert "another tailrace server works with the state" in refused["message"]
        server.ask("PUT", "/connectors/shop/stop", status=204)
    with serving(tmp_path / "two", state_url=database) as other:
        assert other.ask("GET", "/connectors") == ["shop"]


def test_an_address_that_is_taken_is_told(tmp_path: Path) -> None:
    with serving(tmp_path / "one") as server:
        port = int(server.address.rpartition(":")[2])
        with pytest.raises(DefiniteError, match=f"cannot listen on 127.0.0.1:{port}"):
            serve(ServerSettings(tmp_path / "two", port=port), lambda _: None)
