"""`tailrace drop`: what syncs made in a database goes, with the lake or without it, and nothing of others does."""

from __future__ import annotations

import shutil
from pathlib import Path

import psycopg
import pytest
from tests.running import running, sync_once
from typer.testing import CliRunner, Result

from tailrace.cli.commands import app
from tailrace.lake.home import LakeHome
from tailrace.settings import ConnectorSettings
from tailrace.source.postgres.source import PostgresSource


def drop(*arguments: str) -> Result:
    """Where no one can be asked."""
    return CliRunner().invoke(app, ["drop", *arguments], env={"COLUMNS": "200"})


def made(dsn: str) -> tuple[list[str], list[str]]:
    """The slots of the database, and the publications."""
    with psycopg.connect(dsn) as conn:
        slots = conn.execute("select slot_name from pg_replication_slots where database = current_database()")
        publications = conn.execute("select pubname from pg_publication")
        return sorted(name for (name,) in slots), sorted(name for (name,) in publications)


@pytest.fixture
def filled(database: str) -> str:
    with psycopg.connect(database) as conn:
        conn.execute("create table orders (id int primary key); create table events (at text)")
    return database


def synced(dsn: str, lake: Path, *append_only: str) -> str:
    """The slot's name."""
    sync_once(ConnectorSettings(lake, once=True), PostgresSource(dsn, append_only=append_only))
    record = LakeHome(lake).source()
    assert record is not None
    return str(record.claim["slot"])


def test_all_that_syncs_made_is_dropped_without_their_lakes_and_nothing_else(filled: str, tmp_path: Path) -> None:
    first = synced(filled, tmp_path / "first")
    second = synced(filled, tmp_path / "second", "public.events")
    shutil.rmtree(tmp_path / "first")
    shutil.rmtree(tmp_path / "second")
    with psycopg.connect(filled, autocommit=True) as conn:
        conn.execute("select pg_create_logical_replication_slot('tailrace_theirs', 'pgoutput')")
        conn.execute("create publication tailrace_theirs for table orders")
    everything = made(filled)
    assert everything[1] == sorted([first, second, f"{second}_inserts", "tailrace_theirs"])
    asked = drop(filled, "--all")
    assert asked.exit_code == 2
    assert asked.stderr.splitlines() == [
        f"error: --all would drop {', '.join(sorted([first, second]))}",
        "hint: add --yes",
    ]
    assert made(filled) == everything
    done = drop(filled, "--all", "--yes")
    assert (done.exit_code, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == sorted(
        [
            f"slot {first} dropped",
            f"publication {first} dropped",
            f"slot {second} dropped",
            f"publication {second} dropped",
            f"publication {second}_inserts dropped",
        ]
    )
    assert made(filled) == (["tailrace_theirs"], ["tailrace_theirs"])
    assert drop(filled, "--all", "--yes").stdout == "there is nothing to drop\n"


def test_one_slot_is_dropped_by_its_name_with_its_publication(filled: str, tmp_path: Path) -> None:
    first, second = synced(filled, tmp_path / "first"), synced(filled, tmp_path / "second")
    wrong = drop(filled, "--slot", "tailrace_none")
    assert wrong.exit_code == 2
    assert wrong.stderr.splitlines() == [
        "error: there is no slot tailrace_none in this database",
        f"hint: slots of tailrace here: {', '.join(sorted([first, second]))}",
    ]
    done = drop(filled, "--slot", first)
    assert done.stdout.splitlines() == [f"slot {first} dropped", f"publication {first} dropped"]
    assert made(filled) == ([second], [second])
    with psycopg.connect(filled, autocommit=True) as conn:
        conn.execute("select pg_create_logical_replication_slot('mine', 'pgoutput')")
        conn.execute("create publication mine")
    assert drop(filled, "--slot", "mine").stdout == "slot mine dropped\n", "a publication with another's name is theirs"
    assert made(filled) == ([second], sorted(["mine", second]))


def test_what_is_being_read_stays(filled: str, tmp_path: Path) -> None:
    left = synced(filled, tmp_path / "left")
    with running(ConnectorSettings(tmp_path / "lake"), PostgresSource(filled)) as run:
        run.catch_up()
        record = LakeHome(run.lake).source()
        assert record is not None
        used = record.claim["slot"]
        done = drop(filled, "--all", "--yes")
        assert done.exit_code == 0
        assert f"slot {left} dropped" in done.stdout
        assert f"slot {used} is being read (pid" in done.stdout
        assert made(filled) == ([used], [used])


def test_a_lake_that_is_gone_is_told_how_to_drop_without_it(filled: str, tmp_path: Path) -> None:
    for arguments, message in (
        ([str(tmp_path / "gone")], f"error: {tmp_path / 'gone'} is not a Tailrace lake"),
        ([], "error: name what to drop"),
        ([str(tmp_path / "gone"), "--all"], "error: name what to drop"),
    ):
        refused = drop(filled, *arguments)
        assert refused.exit_code == 2
        error, hint = refused.stderr.splitlines()
        assert error == message
        assert "--all" in hint
    lake = tmp_path / "lake"
    slot = synced(filled, lake)
    assert drop(filled, str(lake)).stdout.splitlines() == [f"slot {slot} dropped", f"publication {slot} dropped"]
