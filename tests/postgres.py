"""What tests do with the embedded Postgres and with anything that takes time."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from demo.embedded import EmbeddedPostgres, installed


def wait_until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Returns as soon as the condition holds; fails the test when it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {condition}; meanwhile {at_work()}")
        time.sleep(0.02)


def at_work() -> str:
    """Where in our code each thread of this process is: what a wait without an end waits for."""
    found = []
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, frame in sys._current_frames().items():
        stack = [each for each in traceback.extract_stack(frame) if "tailrace" in each.filename]
        if stack:
            last = stack[-1]
            found.append(f"{names.get(ident, ident)}: {last.name} ({Path(last.filename).name}:{last.lineno})")
    return "; ".join(sorted(found)) or "nothing of ours runs"


def installed_server(data_dir: Path) -> EmbeddedPostgres:
    """A server of the newest Postgres that is installed on this machine, for what the embedded ones lack. Skips the
    test where there is none."""
    found = [(folder, version) for version in range(30, 14, -1) if (folder := installed(version)) is not None]
    if not found:
        pytest.skip("no Postgres is installed on this machine; TAILRACE_POSTGRES_BIN can name one")
    server = EmbeddedPostgres(data_dir)
    server.bin_dir, server.version = found[0]
    return server


def streaming_at_once(dsn: str) -> str:
    """The same database for a source to which the server sends open transactions from their first change on. Skips the
    test where it cannot."""
    with psycopg.connect(dsn) as conn:
        if conn.info.server_version < 160000:
            pytest.skip("before Postgres 16, only large transactions are streamed")
    return f"{dsn}?options=-c%20logical_decoding_work_mem%3D64kB%20-c%20debug_logical_replication_streaming%3Dimmediate"
