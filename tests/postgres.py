"""What tests do with the embedded Postgres and with anything that takes time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from demo.embedded import EmbeddedPostgres, installed


def wait_until(condition: Callable[[], object], seconds: float = 10.0) -> None:
    """Returns as soon as the condition holds; fails the test when it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {condition}")
        time.sleep(0.02)


def installed_server(data_dir: Path) -> EmbeddedPostgres:
    """A server of the newest Postgres that is installed on this machine, for what the embedded ones lack. Skips the
    test where there is none."""
    found = [(folder, version) for version in range(30, 14, -1) if (folder := installed(version)) is not None]
    if not found:
        pytest.skip("no Postgres is installed on this machine; TAILRACE_POSTGRES_BIN can name one")
    server = EmbeddedPostgres(data_dir)
    server.bin_dir, server.version = found[0]
    return server
