"""What is wrong with one table, or with what a person named, stops nothing else, and is told with a way out."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from demo.embedded import EmbeddedPostgres
from tests.integration.lake.equality import assert_equal, execute
from tests.running import connector_of, running, sync_once

import tailrace
from tailrace.connector.events import Event, SourcePrepared, TableChanged
from tailrace.connector.signals.sender import send_resync
from tailrace.errors import DefiniteError
from tailrace.lake.home import LakeHome
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState
from tailrace.settings import ConnectorSettings, SnapshotMode
from tailrace.source.door.source import Source
from tailrace.source.kinds import source_of
from tailrace.source.postgres.catalog.problems import GENERATED_SINCE

A, B, C = "public.a", "public.b", "public.c"


@pytest.fixture
def source(database: str) -> str:
    execute(database, "create table a (id int primary key, v int); create table b (like a including all)")
    execute(database, "insert into a values (1, 1); insert into b values (1, 1)")
    return database


@pytest.fixture
def settings(tmp_path: Path) -> ConnectorSettings:
    return ConnectorSettings(tmp_path / "lake", publish_every_seconds=0.01, look_at_tables_seconds=0.5, once=True)


def record_of(lake: Path, table: str) -> TableRecord:
    return LakeHome(lake).tables.load()[TableId.parse(table)]


def told_by_a_run(settings: ConnectorSettings, source: Source) -> Sequence[str]:
    """The lines about the source."""
    lines: list[str] = []
    connector = connector_of(settings, source)
    connector.subscribe(lambda event: lines.extend(event.done) if isinstance(event, SourcePrepared) else None)
    connector.start()
    assert connector.wait(120)
    return lines


@pytest.mark.parametrize("statement", ["drop table b", "alter table b rename to other"])
def test_a_table_that_was_named_and_is_gone_stops_no_other_at_the_next_start(
    source: str, settings: ConnectorSettings, statement: str
) -> None:
    settings = replace(settings, tables=[A, B])
    assert sync_once(settings, source_of(source)) == {A: TableState.LIVE, B: TableState.LIVE}
    execute(source, f"{statement}; update a set v = 2")
    for value in (2, 3):
        execute(source, f"update a set v = {value}")
        assert sync_once(settings, source_of(source)) == {A: TableState.LIVE, B: TableState.ERRORED}
        assert_equal(source, settings.lake, A)
    assert record_of(settings.lake, B).reason == "table public.b is gone from the source"
    assert record_of(settings.lake, B).hint == "leave it out with --exclude public.b"
    left_out = replace(settings, exclude=[B])
    assert sync_once(left_out, source_of(source)) == {A: TableState.LIVE, B: TableState.REMOVED}
    misspelt = connector_of(replace(settings, tables=[A, "public.bb"]), source_of(source))
    misspelt.start()
    with pytest.raises(DefiniteError, match=r"no table matches 'public\.bb'"):
        misspelt.wait(60)


def test_a_column_that_was_named_and_is_gone_stops_nothing_and_is_told(
    source: str, settings: ConnectorSettings
) -> None:
    chosen = source_of(source, as_text=["public.b.v"])
    assert sync_once(settings, chosen) == {A: TableState.LIVE, B: TableState.LIVE}
    execute(
        source, "alter table b drop v; insert into b values (2); insert into a values (2, 2); create table c (id int)"
    )
    execute(source, "alter table c add primary key (id)")
    (line,) = [line for line in told_by_a_run(settings, chosen) if "no column" in line]
    assert "no column matches 'public.b.v' any more, the others go on" in line
    assert line.endswith("leave out --as-text public.b.v")
    assert sync_once(settings, chosen) == dict.fromkeys((A, B, C), TableState.LIVE)
    assert_equal(source, settings.lake, A, B, C)


def test_every_reason_of_a_table_is_told_with_a_line_of_hint_for_each(source: str, settings: ConnectorSettings) -> None:
    execute(source, "create table keyless (id int); create role reader login replication; grant select on a to reader")
    try:
        execute(source, "create publication given for table a, keyless")
        problems = {str(each.table): each.problem for each in source_of(_as(source, "reader")).tables([], [])}
        keyless = problems["public.keyless"]
        assert keyless is not None
        assert (
            keyless.message == "table public.keyless has no primary key; user reader may not read table public.keyless"
        )
        first, second = (keyless.hint or "").splitlines()
        assert first.startswith('alter table "public"."keyless" replica identity full')
        assert second == 'grant select on "public"."keyless" to "reader";'
    finally:
        execute(source, "drop owned by reader; drop role reader")


def test_a_read_says_so_where_every_table_is_in_error(database: str, settings: ConnectorSettings) -> None:
    execute(database, "create table t (id int, v int generated always as (1) stored)")
    with psycopg.connect(database) as conn:
        has_generated = conn.info.server_version >= GENERATED_SINCE
    assert sync_once(settings, source_of(database)) == {"public.t": TableState.ERRORED}
    with pytest.raises(DefiniteError, match="every table is in error") as caught:
        tailrace.arrow(settings.lake, "public.t")
    assert "public.t: table public.t has no primary key" in caught.value.message
    assert 'alter table "public"."t" replica identity full' in (caught.value.hint or "")
    if has_generated:
        execute(database, "alter table t replica identity full")
        assert sync_once(settings, source_of(database)) == {"public.t": TableState.ERRORED}
        hint = record_of(settings.lake, "public.t").hint or ""
        assert "--generated-columns" in hint
        assert "publish_generated_columns = stored" in hint
        assert sync_once(settings, source_of(database, generated=True)) == {"public.t": TableState.LIVE}


def _as(dsn: str, user: str) -> str:
    return dsn.replace("postgres@", f"{user}@")


@pytest.fixture
def windows_1252(postgres: EmbeddedPostgres) -> Iterator[str]:
    """A database whose encoding has bytes that no other one has, so the server cannot send them."""
    options = "encoding 'WIN1252' template template0 lc_collate 'C' lc_ctype 'C'"
    with psycopg.connect(postgres.dsn(), autocommit=True) as conn:
        conn.execute(f"create database in_1252 {options}")  # type: ignore[call-overload]
    yield postgres.dsn("in_1252")
    postgres.drop_database("in_1252")


def spoil(dsn: str, *statements: bytes) -> None:
    with psycopg.connect(dsn) as conn:
        conn.execute("set client_encoding = 'WIN1252'")
        for statement in statements:
            conn.execute(statement)


def test_a_value_that_the_server_cannot_send_is_stepped_over_and_has_its_table_copied_again(
    windows_1252: str, settings: ConnectorSettings
) -> None:
    source = source_of(windows_1252)
    for table in ("good", '"größe"', "beside"):
        execute(windows_1252, f"create table {table} (id int primary key, v text)")
    with running(replace(settings, once=False), source) as run:
        run.catch_up()
        insert, delete = b"insert into \"gr\xf6\xdfe\" values (1, E'\\x81')", b'delete from "gr\xf6\xdfe"'
        spoil(windows_1252, insert, b"insert into beside values (1, 'in the same transaction')")
        spoil(windows_1252, delete)
        execute(windows_1252, "insert into good values (1, 'ä'); insert into \"größe\" values (2, 'ß')")
        for table in ("public.größe", "public.beside"):
            run.wait_for_state(table, TableState.LIVE, copy=2)
        run.catch_up()
        assert_equal(windows_1252, run.lake, "public.good", "public.größe", "public.beside")
        records = run.connector.tables()
        assert {str(table): record.copy for table, record in records.items()} == {
            "public.beside": 2,
            "public.good": 1,
            "public.größe": 2,
        }
        (reason,) = {
            event.record.reason
            for event in run.events
            if isinstance(event, TableChanged) and event.record.state is TableState.RESYNCING
        }
        assert "the server cannot send what the transaction at" in str(reason)
        assert run.connector.status().trouble is None


def test_a_value_that_the_server_cannot_send_and_that_stays_stops_its_table_alone(
    windows_1252: str, settings: ConnectorSettings
) -> None:
    source = source_of(windows_1252)
    execute(windows_1252, "create table good (id int primary key, v text); create table odd (like good including all)")
    sync_once(settings, source)
    spoil(windows_1252, b"insert into odd values (1, E'\\x81')")
    execute(windows_1252, "insert into good values (1, 'ä')")
    assert sync_once(settings, source) == {"public.good": TableState.LIVE, "public.odd": TableState.ERRORED}
    assert_equal(windows_1252, settings.lake, "public.good")
    odd = record_of(settings.lake, "public.odd")
    assert "cannot read public.odd" in str(odd.reason)
    assert str(odd.hint).endswith(f"tailrace tables resync {settings.lake} public.odd")
    spoil(windows_1252, b"update odd set v = 'readable'")
    execute(windows_1252, "insert into good values (2, 'ä')")
    send_resync(settings.lake, TableId.parse("public.odd"))
    assert set(sync_once(settings, source).values()) == {TableState.LIVE}
    assert_equal(windows_1252, settings.lake, "public.good", "public.odd")


def test_a_damaged_log_ends_every_start_alike_and_the_hint_puts_it_aside(
    source: str, settings: ConnectorSettings
) -> None:
    sync_once(settings, source_of(source))
    with running(replace(settings, once=False, publish_every_seconds=3600), source_of(source)) as run:
        run.catch_up()
        execute(source, "insert into a select n, n from generate_series(2, 999) n")
        run.wait_for_log()
    (segment,) = (settings.lake / "_tailrace" / "log").glob("*.arrows")
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 0xFF
    segment.write_bytes(content)
    for _ in range(2):
        connector = connector_of(settings, source_of(source))
        connector.start()
        with pytest.raises(DefiniteError, match=r"log") as caught:
            connector.wait(60)
        assert {record.state for record in connector.tables().values()} == {TableState.LIVE}
    _, _, aside = str(caught.value.hint).partition("copies every table again: ")
    subprocess.run(aside, shell=True, check=True)
    assert set(sync_once(settings, source_of(source)).values()) == {TableState.LIVE}
    assert_equal(source, settings.lake, A, B)


def test_a_log_that_is_gone_has_every_table_copied_again(source: str, settings: ConnectorSettings) -> None:
    sync_once(settings, source_of(source))
    with running(replace(settings, once=False, publish_every_seconds=3600), source_of(source)) as run:
        run.catch_up()
        execute(source, "insert into a values (2, 2)")
        run.wait_for_log()
    shutil.rmtree(settings.lake / "_tailrace" / "log")
    assert set(sync_once(settings, source_of(source)).values()) == {TableState.LIVE}
    assert_equal(source, settings.lake, A, B)
    assert record_of(settings.lake, A).copy == 2


def test_a_publication_that_is_gone_is_told_before_any_table_is_copied_again(
    source: str, settings: ConnectorSettings
) -> None:
    execute(source, "create publication given for table a, b")
    given = source_of(source, publication="given")
    sync_once(settings, given)
    execute(source, "drop publication given; update a set v = 7")
    heard: list[Event] = []
    connector = connector_of(settings, given)
    connector.subscribe(heard.append)
    connector.start()
    with pytest.raises(DefiniteError, match="publication given does not exist") as caught:
        connector.wait(60)
    assert not [event for event in heard if isinstance(event, TableChanged)]
    assert str(caught.value.hint).startswith('create publication "given" for table')
    execute(source, "create publication given for table a, b")
    assert set(sync_once(replace(settings, snapshot_mode=SnapshotMode.WHEN_NEEDED), given).values()) == {
        TableState.LIVE
    }
    assert_equal(source, settings.lake, A, B)


@pytest.mark.proof
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("stays", [False, True])
def test_a_bytea_that_is_too_long_to_be_printed_stops_its_table_alone(
    database: str, settings: ConnectorSettings, stays: bool
) -> None:
    execute(database, "create table good (id int primary key); create table big (id int primary key, b bytea)")
    execute(database, "alter table big alter b set storage external")
    source = source_of(database)
    sync_once(settings, source)
    execute(database, "insert into big select 1, convert_to(repeat('x', 600000000), 'UTF8')")
    execute(database, "insert into good values (1)" + ("" if stays else "; delete from big"))
    big = TableState.ERRORED if stays else TableState.LIVE
    assert sync_once(settings, source) == {"public.big": big, "public.good": TableState.LIVE}
    execute(database, "insert into good values (2)")
    assert sync_once(settings, source) == {"public.big": big, "public.good": TableState.LIVE}
    assert_equal(database, settings.lake, "public.good", *(() if stays else ("public.big",)))
    if stays:
        assert "invalid memory alloc request size" in str(record_of(settings.lake, "public.big").reason)
