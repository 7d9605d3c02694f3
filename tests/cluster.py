"""A standalone Spark cluster of two workers on loopback, as processes of their own, from the pyspark that is here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
from tests.postgres import wait_until

WORKERS = 2
JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1"
_CLASS = Path(pyspark.__file__).parent / "bin" / "spark-class"
_ADDRESS = re.compile(r"Starting Spark master at (spark://\S+)")


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """The address of its master. Each worker has one core and a gigabyte, and an address of its own: Spark lets a
    second attempt at a task run on another machine only."""
    with ExitStack() as stack:
        log = stack.enter_context(_daemon(folder / "master", "127.0.0.1", "master.Master", "--webui-port", "0"))
        wait_until(lambda: _ADDRESS.search(log.read_text()), 60)
        found = _ADDRESS.search(log.read_text())
        assert found is not None
        options = ("--webui-port", "0", "--cores", "1", "--memory", "1g")
        for number in range(WORKERS):
            place, host = folder / f"worker-{number}", f"127.0.0.{1 + number}"
            stack.enter_context(_daemon(place, host, "worker.Worker", *options, "--work-dir", str(place), found[1]))
        wait_until(lambda: log.read_text().count("Registering worker") == WORKERS, 60)
        yield found[1]


@contextmanager
def _daemon(folder: Path, host: str, name: str, *arguments: str) -> Iterator[Path]:
    """One process, ended by its number. What it prints is in the file."""
    folder.mkdir(parents=True)
    log = folder / "log"
    environment = os.environ | {
        "SPARK_LOCAL_IP": host,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": JVM,
        "SPARK_NO_DAEMONIZE": "1",
    }
    command = [str(_CLASS), f"org.apache.spark.deploy.{name}", "--host", host, "--port", "0", *arguments]
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment)
    try:
        yield log
    finally:
        process.terminate()
        process.wait(30)


def bare_python(path: Path, *, with_packages: bool) -> Path:
    """A Python that does not know this project, as workers have it: with the packages that are installed here, or
    without any."""
    packages = f'export PYTHONPATH="$PYTHONPATH:{sysconfig.get_paths()["purelib"]}"' if with_packages else ""
    path.write_text(f'#!/bin/sh\n{packages}\nexec "{sys.executable}" -S "$@"\n')
    path.chmod(0o755)
    return path
