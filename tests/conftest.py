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
from demo.embedded import EmbeddedPostgres, programs

from tailrace import hidden

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.s3 import S3Server

ROOT = Path(__file__).resolve().parents[1]
_numbers = itertools.count(1)

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell lets what it starts in the background ignore Ctrl-C, and so would every command that a test interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--postgres", type=int, default=18, metavar="VERSION", help="the Postgres that tests run on: 15, 16 or 18"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Every server that a test starts has the version, also one that a command starts which a test runs."""
    version: int = config.getoption("--postgres")
    try:
        programs(version)
    except RuntimeError as missing:
        raise pytest.UsageError(str(missing)) from None
    os.environ["TAILRACE_POSTGRES_VERSION"] = str(version)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs a Spark of its own can be chosen with `-m spark`: each worker that runs such a test has a JVM. What
    takes long is chosen with `-m thorough`."""
    thorough = thorough_tests()
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
        if not thorough.isdisjoint((item.nodeid, item.nodeid.partition("[")[0])):
            item.add_marker("thorough")


def thorough_tests() -> set[str]:
    """What `thorough.txt` names."""
    lines = (ROOT / "tests" / "thorough.txt").read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def pytest_report_header(config: pytest.Config) -> str:
    return f"postgres: {config.getoption('--postgres')}"


@pytest.fixture(autouse=True)
def _nothing_hidden() -> Iterator[None]:
    """What one test looked up is masked in its messages, and in those of no other."""
    yield
    hidden.forget()


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """A server of the chosen version, with `wal_level = logical`."""
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
def s3() -> Iterator[S3Server]:
    """A server that speaks S3."""
    from tests.s3 import s3_server

    with s3_server() as server:
        yield server


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The Spark session that Tailrace itself uses, except that it compiles no query (see `tests.engines.compiled`)."""
    from tests.engines import UNCOMPILED

    from tailrace.engine.spark.session import session
    from tailrace.lake.formats import format_named
    from tailrace.settings import SparkSettings

    # Executors import the tests' own source and lake.
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    spark = session(format_named("delta"), settings=SparkSettings(conf=tuple(UNCOMPILED.items())))
    yield spark
    spark.stop()
