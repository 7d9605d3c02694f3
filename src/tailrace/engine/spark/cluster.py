"""A Spark cluster as the place of work: what its executors need, and whether they have it.

Executors get this package from us. The packages it needs must be in their Python, and log and lake in a folder that
they see under the same name as we do. A machine that sees another folder there would write rows that no reader ever
finds, so a file that we put into the lake must be there for them too.
"""

from __future__ import annotations

import os
import py_compile
import re
import socket
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from pyspark.sql import SparkSession

from tailrace import ending
from tailrace.engine.spark.errors import SessionError
from tailrace.settings import SparkSettings

NEEDED = ("duckdb", "duckdb_extension_delta", "numba", "numpy", "pyarrow", "psycopg", "pyroaring", "xxhash")
"""What executors import, beside Spark's own."""
PACKAGE = "tailrace.zip"
"""What executors find this package in: Spark puts it into the folder that they work in, before their first task."""
DAEMON_MODULE, DAEMON = "spark.python.daemon.module", "tailrace.engine.spark.daemon"
CONNECT_SECONDS = 10.0
EXECUTORS_SECONDS = 60.0
POLL_SECONDS = 0.1

_PYTHON_PATH = "spark.executorEnv.PYTHONPATH"
_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_STANDALONE = re.compile(r"spark://(?P<hosts>.+)")
_REASONS = (
    re.compile(r"\[PYTHON_VERSION_MISMATCH\] (?P<reason>[^\n]+)"),
    re.compile(r"(?P<reason>Cannot run program [^\n]+)"),
    re.compile(r"(?P<reason>ModuleNotFoundError: [^\n]+)"),
)
_PYTHON_HINT = "name a Python that is on every worker: --spark-conf spark.pyspark.python=/opt/tailrace/bin/python"


_EQUIPPED: set[str] = set()
"""The sessions of this process whose executors have the package."""


def is_cluster(master: str) -> bool:
    return not master.startswith("local")


def require_reachable(settings: SparkSettings) -> None:
    """A definite error where the master of a standalone cluster does not answer, or its workers could not answer us."""
    found = _STANDALONE.fullmatch(settings.master)
    if found is None:
        return
    addresses = [_address(each, settings.master) for each in found["hosts"].split(",")]
    conf = dict(settings.conf)
    away = [host for host, _ in addresses if host not in _LOOPBACK]
    if away and conf.get("spark.driver.host", _LOOPBACK[0]) in _LOOPBACK:
        raise SessionError(
            f"the workers of {settings.master} cannot reach this process: it listens on loopback alone",
            "--spark-conf spark.driver.host=ADDRESS_OF_THIS_MACHINE --spark-conf spark.driver.bindAddress=0.0.0.0",
        )
    if not any(map(_answers, addresses)):
        raise SessionError(
            f"no Spark master answers at {settings.master}", "see whether it runs: is it the right port?"
        )


def _address(text: str, master: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise SessionError(f"{master} is not a Spark master", "a standalone cluster is spark://HOST:PORT")
    return host.strip("[]"), int(port)


def _answers(address: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(address, CONNECT_SECONDS):
            return True
    except OSError:
        return False


def has_context(spark: SparkSession) -> bool:
    """Whether there is a SparkContext in this process: not in Spark Connect, whose sessions are of another class."""
    return isinstance(spark, SparkSession)


def master_of(spark: SparkSession) -> str:
    return str(spark.sparkContext.master if has_context(spark) else spark.conf.get("spark.master"))


def equip(spark: SparkSession) -> None:
    """Give the executors of someone's own session this package. A Spark in this process has it already."""
    if not has_context(spark) or is_cluster(master_of(spark)):
        ship(spark, ending.temporary_folder("tailrace-package-"))


def ship(spark: SparkSession, folder: Path) -> None:
    """Give executors this package, whatever their Python has by that name. Once: Spark refuses a second file of the
    same name."""
    session_id = spark.sparkContext.applicationId if has_context(spark) else str(getattr(spark, "session_id", ""))
    if session_id in _EQUIPPED:
        return
    _EQUIPPED.add(session_id)
    package = str(packed(folder))
    if has_context(spark):
        spark.sparkContext.addPyFile(package)
    else:
        spark.addArtifacts(package, pyfile=True)


def worker_options(conf: Mapping[str, str]) -> dict[str, str]:
    """Lets the executors of a cluster fork workers that have loaded what tasks need. Where a person has chosen another
    daemon or more places for modules, those are kept."""
    places = [PACKAGE, *filter(None, [conf.get(_PYTHON_PATH)])]
    return {DAEMON_MODULE: DAEMON, **conf, _PYTHON_PATH: os.pathsep.join(places)}


def packed(folder: Path) -> Path:
    """The package as one file in `folder`, from which Python imports it. It has every module compiled too: a worker
    would compile all that it imports each time, as nothing can be written into such a file."""
    package, target = Path(str(files("tailrace"))), folder / PACKAGE
    compiled = folder / "compiled.pyc"
    with ZipFile(target, "w", ZIP_DEFLATED) as archive:
        for path in sorted(package.rglob("*")):
            name = Path("tailrace", path.relative_to(package))
            if path.suffix in (".py", ".sql"):
                archive.write(path, name)
            if path.suffix == ".py":
                unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
                py_compile.compile(str(path), str(compiled), str(name), doraise=True, invalidation_mode=unchecked)
                archive.write(compiled, name.with_suffix(".pyc"))
    compiled.unlink()
    return target


def require_executors(spark: SparkSession, lake: Path) -> None:
    """Wait until there are executors. A definite error if none come, or if one of them could not do our work."""
    context = spark.sparkContext
    deadline = time.monotonic() + EXECUTORS_SECONDS
    # The driver counts as one.
    while context._jsc.sc().getExecutorMemoryStatus().size() < 2:
        if time.monotonic() > deadline:
            hint = "are there workers with free cores and memory? --spark-conf spark.executor.memory=512m asks for less"
            raise SessionError(f"{context.master} gave us no executor within {EXECUTORS_SECONDS:.0f} s", hint)
        time.sleep(POLL_SECONDS)
    tasks = context.defaultParallelism
    spark.conf.set("spark.sql.shuffle.partitions", tasks)
    mark = lake / f".tailrace-{uuid.uuid4()}"
    lake.mkdir(parents=True, exist_ok=True)
    mark.touch()
    try:
        found = context.parallelize(range(tasks), tasks).mapPartitions(partial(missing, mark)).collect()
    except Exception as error:
        raise SessionError(f"executors cannot run our Python: {_reason(error)}", _PYTHON_HINT) from None
    finally:
        mark.unlink()
    for each in found:
        raise SessionError(*each)


def missing(mark: Path, _: Iterable[int]) -> Iterator[tuple[str, str]]:
    """On an executor: what it lacks, and what helps."""
    host = socket.gethostname()
    lacking = [name for name in NEEDED if not _imports(name)]
    if lacking:
        names = " ".join(lacking)
        yield f"the Python of the executor on {host} lacks {names}", f"pip install {names} there, or {_PYTHON_HINT}"
    elif not mark.exists():
        message = f"the executor on {host} does not see the lake in {mark.parent}"
        yield message, "put the lake into a folder that all machines share under one name"
    elif not os.access(mark.parent, os.W_OK):
        yield (
            f"the executor on {host} may not write into {mark.parent}",
            "run the workers as the user who runs tailrace",
        )


def _imports(name: str) -> bool:
    try:
        import_module(name)
    except ImportError:
        return False
    return True


def _reason(error: Exception) -> str:
    text = str(error)
    found = next((found for pattern in _REASONS if (found := pattern.search(text))), None)
    return found["reason"].strip() if found else text.strip().splitlines()[0]
