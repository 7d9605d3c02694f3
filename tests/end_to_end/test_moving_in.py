"""Moving in from Debezium: a real engine hands its slot over in the middle of writes, and nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest
from demo.compare import compare
from demo.embedded import EmbeddedPostgres
from tests import debezium
from tests.journey import interrupt, run, start_shared, wait_for_cuts
from tests.postgres import wait_until
from tests.running import sync_once
from tests.serving import Served, config_for, serving

from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings
from tailrace.source.kinds import source_of

SLOT = "debezium"
TABLES = ("public.accounts", "public.events", "public.notes")
SETUP = """
create table events (n int primary key, body text);
create table accounts (id int primary key, total int not null);
create table notes (v text);
alter table notes replica identity full;
insert into accounts select id, 0 from generate_series(1, 50) id;
insert into events select -n, repeat('old', 10) from generate_series(1, 2000) n;
insert into notes values ('twice'), ('twice');
create publication dbz_publication for table events, accounts, notes;
"""
WITH_ROWS, BEHIND, WITHOUT_LAKE = "with_rows", "behind", "without_lake"


class Writer(threading.Thread):
    """Commits transactions over three tables, one after another, until it is told to stop."""

    def __init__(self, dsn: str, first: int) -> None:
        super().__init__(daemon=True)
        self._dsn = dsn
        self._first = first
        self._stopping = threading.Event()
        self.transactions: list[int] = []
        """Their numbers at the server, in the order of their commits."""

    def run(self) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as conn:
            number = self._first
            while not self._stopping.wait(0.005):
                number += 1
                with conn.transaction():
                    conn.execute("insert into events values (%s, 'new')", [number])
                    conn.execute("update accounts set total = total + 1 where id = %s", [number % 50 + 1])
                    conn.execute("insert into notes values (%s)", [f"note {number % 7}"])
                    (xid,) = conn.execute("select pg_current_xact_id()::text::bigint").fetchone() or (0,)
                self.transactions.append(xid)

    def stop(self) -> None:
        self._stopping.set()
        if self.ident is not None:
            self.join()


@dataclass(frozen=True)
class Legacy:
    """A database whose Debezium has been stopped in the middle of writes, and lakes that could take over from it."""

    dsn: str
    folder: Path
    writer: Writer

    @property
    def delivered(self) -> list[int]:
        """The transactions whose changes Debezium has delivered, in order."""
        path = self.folder / "delivered.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return [json.loads(line)["tx"] for line in lines]

    def lake(self, name: str) -> Path:
        return self.folder / "lakes" / name


@pytest.fixture(scope="module")
def legacy(postgres: EmbeddedPostgres) -> Iterator[Legacy]:
    """One engine for all tests: each takes over a copy of its slot, or the slot itself."""
    dsn = postgres.create_database("legacy")
    with TemporaryDirectory(prefix="tailrace-legacy-") as folder, psycopg.connect(dsn, autocommit=True) as conn:
        found = Legacy(dsn, Path(folder), Writer(dsn, 0))
        conn.execute(SETUP)
        _make_lake(found, BEHIND)
        conn.execute("update accounts set total = -1 where id = 7")
        try:
            _run_debezium(found, conn)
        finally:
            found.writer.stop()
        _make_lake(found, WITH_ROWS)
        for name in (WITH_ROWS, BEHIND, WITHOUT_LAKE):
            conn.execute("select pg_copy_logical_replication_slot(%s, %s)", [SLOT, f"{SLOT}_{name}"])
        yield found
    postgres.drop_database("legacy")


def _make_lake(legacy: Legacy, name: str) -> None:
    """With a slot of its own, and all rows that there are now."""
    sync_once(ConnectorSettings(legacy.lake(name), once=True), source_of(legacy.dsn))


def _run_debezium(legacy: Legacy, conn: psycopg.Connection) -> None:
    """Until it has delivered some transactions; the writer stays at it. While it runs, its slot is not taken over."""
    with engine(legacy.dsn, legacy.folder):
        wait_until(lambda: _active(conn) == [True], 120)
        legacy.writer.start()
        wait_until(lambda: len(set(legacy.delivered)) >= 100, 120)
        some = '{"partition": {"server": "legacy"}, "offset": {"lsn": 5}}'
        lake = legacy.lake("too_early")
        busy = run("offsets", "import", str(lake), some, "--dsn", legacy.dsn, "--slot", SLOT)
        assert (busy.returncode, "is being read by process" in busy.stderr) == (2, True), busy
        assert not lake.exists()
    wait_until(lambda: _active(conn) == [False], 60)


@contextmanager
def engine(dsn: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.debezium", dsn, SLOT, str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        yield process
        process.communicate(timeout=60)
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()


def _active(conn: psycopg.Connection) -> list[bool]:
    found = conn.execute("select active from pg_replication_slots where slot_name = %s", [SLOT]).fetchall()
    return [active for (active,) in found]


def assert_equal(legacy: Legacy, lake: Path) -> None:
    assert [(each.table, each.equal) for each in compare(legacy.dsn, lake, TABLES)] == [(t, True) for t in TABLES]


def wait_for_commit(legacy: Legacy, lake: Path) -> None:
    """Until all that is committed now is published, in all tables."""
    now = source_of(legacy.dsn).now().ordinal
    wait_until(lambda: {each.state for each in LakeHome(lake).tables.load().values()} == {TableState.LIVE}, 60)
    wait_until(lambda: _log(lake).head.ordinal >= now, 60)
    head = _log(lake).head.seq
    wait_until(lambda: (cut := LakeHome(lake).cuts.newest()) is not None and cut.seq >= head, 60)


def _log(lake: Path) -> LogReader:
    return LogReader(lake / "_tailrace" / "log")


@pytest.mark.timeout(600)
def test_a_real_debezium_hands_its_slot_over_in_the_middle_of_writes_and_nothing_is_lost(
    legacy: Legacy, tmp_path: Path
) -> None:
    lake, writer = tmp_path / "lake", Writer(legacy.dsn, 1_000_000)
    writer.start()
    try:
        _import(legacy.dsn, lake, legacy.folder / "offsets.dat")
        process = start_shared("sync", legacy.dsn, str(lake), "--slot", SLOT, "--publication", debezium.PUBLICATION)
        wait_for_cuts(process, lake, 3)
    finally:
        writer.stop()
    wait_for_commit(legacy, lake)
    code, _, errors = interrupt(process)
    assert code == 0, errors
    assert_equal(legacy, lake)
    _assert_exactly_once({*legacy.writer.transactions, *writer.transactions}, legacy.delivered, logged(lake))
    offset = json.loads(run("offsets", "get", str(lake)).stdout)["offsets"][0]
    assert offset["partition"] == {"server": debezium.PREFIX}
    assert offset["offset"]["txId"] == writer.transactions[-1]
    history = [json.loads(line) for line in run("offsets", "history", str(lake), "--json").stdout.splitlines()]
    assert [(each["kind"], each["state"]) for each in history] == [("import", "taken")]


def _import(dsn: str, lake: Path, stored: Path) -> None:
    command = ("offsets", "import", str(lake), str(stored), "--dsn", dsn, "--slot", SLOT)
    planned = run(*command, "--dry-run")
    assert planned.returncode == 0, planned
    assert "every table is copied by windows" in planned.stdout
    assert not lake.exists()
    imported = run(*command)
    assert imported.returncode == 0, imported


def logged(lake: Path) -> list[int]:
    reader = _log(lake)
    return list(reader.transactions(reader.oldest_seq - 1, reader.head.seq).column("xid").to_pylist())


def _assert_exactly_once(written: set[int], theirs: list[int], ours: list[int]) -> None:
    """What Debezium delivered and what the log has are all transactions together, each of them once, but for the one
    that Debezium was in the middle of: of that it may have delivered a part."""
    assert len(ours) == len(set(ours))
    assert written <= set(theirs) | set(ours), "nothing is lost"
    assert set(theirs) & set(ours) <= {theirs[-1]}, "nothing comes twice"


@pytest.mark.parametrize(
    ("name", "has_lake", "copied", "copies"),
    [(WITH_ROWS, True, [], 1), (BEHIND, True, [*TABLES], 2), (WITHOUT_LAKE, False, [], 1)],
)
@pytest.mark.timeout(600)
def test_offsets_as_kafka_connect_answers_them_are_taken_over_and_only_rows_that_the_lake_lacks_are_copied(
    legacy: Legacy, tmp_path: Path, name: str, has_lake: bool, copied: list[str], copies: int
) -> None:
    lake, slot = legacy.lake(name), f"{SLOT}_{name}"
    stored = (legacy.folder / "offsets.json").read_bytes()
    assert list(json.loads(stored)) == ["offsets"]
    config = config_for(legacy.dsn, slot_name=slot, lake_path=str(lake))
    with serving(tmp_path / "home") as server:
        server.create(name, config | ({} if has_lake else {"publication.name": debezium.PUBLICATION}), **STOPPED)
        planned = _import_over_rest(server, name, stored, dry_run="true")
        assert (planned["has_lake"], planned["tables_to_copy"]) == (has_lake, copied)
        assert server.ask("GET", f"/connectors/{name}/offsets/history") == []
        assert "have been imported" in _import_over_rest(server, name, stored)["message"]
        shown = server.ask("GET", f"/connectors/{name}/offsets")
        assert [each["partition"] for each in shown["offsets"]] == [{"server": name}]
        assert server.ask("PATCH", f"/connectors/{name}/offsets?dry_run=true", shown)["possible"], "as it was shown"
        with psycopg.connect(legacy.dsn, autocommit=True) as conn:
            conn.execute("update accounts set total = total + 1")
        server.ask("PUT", f"/connectors/{name}/resume", status=202)
        server.wait_for(name, "RUNNING")
        wait_until(lambda: _copies(server, name) == dict.fromkeys(TABLES, copies), 60)
        wait_for_commit(legacy, lake)
        assert _copies(server, name) == dict.fromkeys(TABLES, copies)
        assert_equal(legacy, lake)
        assert [each["kind"] for each in server.ask("GET", f"/connectors/{name}/offsets/history")] == ["import"]
    if name == WITH_ROWS:
        assert not set(legacy.writer.transactions) & set(logged(lake)), "it had them as rows"


STOPPED = {"initial_state": "STOPPED"}


def _copies(server: Served, name: str) -> dict[str, int]:
    return {each["table"]: each["copies"] for each in server.ask("GET", f"/connectors/{name}/tables")}


def _import_over_rest(server: Served, name: str, content: bytes, **query: str) -> Any:
    answer = server.http.post(f"/connectors/{name}/offsets/import", content=content, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()
