"""Capture, killed at each boundary between two durable writes while transactions are open: nothing lost or twice."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from tests.integration.postgres.playing import T, U, assert_same, kinds
from tests.postgres import streaming_at_once, wait_until

from tailrace.log.reader import LogReader
from tailrace.model.kind import Kind
from tailrace.source.postgres.source import PostgresSource

POINTS = [
    ("capture.appended:3", "capture.abandoned:1"),
    ("capture.flushed:3", "capture.appended:1"),
    ("capture.flushed:1", "capture.flushed:2"),
]


@contextmanager
def child(source: PostgresSource, claim: object, log: Path, point: str = "") -> Iterator[subprocess.Popen[bytes]]:
    order = json.dumps({"source": source.arguments, "claim": claim, "log": str(log)})
    command = [sys.executable, "-m", "tests.crash.capturing", order]
    with subprocess.Popen(command, env=os.environ | {"TAILRACE_FAILPOINT": point}) as process:
        try:
            yield process
        finally:
            process.kill()


def log_size(log: Path) -> tuple[int, int]:
    sizes = [file.stat().st_size for file in log.glob("*.arrows")]
    return len(sizes), sum(sizes)


@pytest.mark.parametrize("points", POINTS)
def test_capture_killed_while_transactions_are_open_logs_each_of_them_once(
    database: str, tmp_path: Path, points: tuple[str, ...]
) -> None:
    log = tmp_path / "log"
    source = PostgresSource(streaming_at_once(database))
    with psycopg.connect(database, autocommit=True) as conn, psycopg.connect(database) as other:
        conn.execute("create table t (id int primary key, body text); create table u (id int primary key, body text)")
        claim = source.claim(None)
        source.prepare(claim, [T, U], None)
        number = 0

        def act() -> None:
            """Some more of an open transaction, of which a part is taken back, and a short one."""
            nonlocal number
            number += 1
            first = number * 100
            other.execute(f"insert into t select n, 'open' from generate_series({first}, {first + 50}) n")
            other.execute(f"savepoint a; update t set body = 'lost' where id = {first}; rollback to a")
            conn.execute("insert into u values (%s, 'short')", [number])

        for point in points:
            with child(source, claim, log, point) as process:
                seen = (0, 0)

                def has_died() -> bool:
                    # As much as is read, so that there is always something to come.
                    nonlocal seen
                    if seen != (seen := log_size(log)) or number == 0:
                        act()
                    return process.poll() is not None

                act()
                wait_until(has_died, 60)
                assert process.returncode == -signal.SIGKILL
        act()
        other.commit()
        act()
        other.rollback()
        now = source.now().ordinal
        with child(source, claim, log):
            wait_until((log / "head").exists, 30)
            wait_until(lambda: LogReader(log).head.ordinal >= now, 60)
        assert kinds(log).count(Kind.ROLLBACK_SUB) > 1
        assert_same(conn, source, log)
