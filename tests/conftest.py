"""What tests share: one Postgres and one Spark for the whole run, a fresh database for each test."""

from __future__ import annotations

import itertools
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from demo.embedded import EmbeddedPostgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).resolve().parents[1]
_numbers = itertools.count(1)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell lets what it starts in the background ignore Ctrl-C, and so would every command that a test interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """A Postgres 18 server with `wal_level = logical`."""
    # Not below pytest's own folder: each pytest that starts closes that to all other users, the server's too.
    folder = tempfile.TemporaryDirectory(prefix="tailrace-postgres-")
    with folder, EmbeddedPostgres(Path(folder.name) / "data") as server:
        yield server


@pytest.fixture
def database(postgres: EmbeddedPostgres) -> Iterator[str]:
    """The DSN of an empty database, dropped afterwards with every slot left in it."""
    name = f"test_{next(_numbers)}"
    yield postgres.create_database(name)
    postgres.drop_database(name)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The Spark session that Tailrace itself uses."""
    from tailrace.lake.formats import format_named
    from tailrace.spark.session import session

    # Executors import the tests' own source and lake.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    spark = session(format_named("delta"))
    yield spark
    spark.stop()
