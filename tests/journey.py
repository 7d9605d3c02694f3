"""Running `tailrace` as a user does: a process, its exit code, what it prints."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.postgres import wait_until
from tests.shared_jvm import SHARED

from tailrace.engine.spark.options import BRIEF_JVM
from tailrace.lake.cuts import Cuts
from tailrace.storage.local import LocalFolder

RUN_SECONDS = 240
QUICK_JVM = BRIEF_JVM
NO_SPARK = {"TAILRACE_JVM_OPTIONS": "-Xms999g"}
"""With these no Spark starts, so what is told instead was found before. (Spark has unknown options ignored.)"""
OWN_JVM = {"TAILRACE_FAILPOINT", "TAILRACE_JVM_OPTIONS", "JAVA_HOME", "PGPASSWORD"}
"""A command with one of these has a JVM of its own: its tasks do as the environment says."""
MOVING = {"sync", "run", "verify", "maintain", "spark"}
"""What a command that may need a JVM is called, or one of its arguments."""


def start(*arguments: str, **variables: str) -> subprocess.Popen[str]:
    """`tailrace` in a process of its own, with these environment variables. Its JVM is its own."""
    environment = os.environ | {"TAILRACE_JVM_OPTIONS": QUICK_JVM, "COLUMNS": "200"} | variables
    return subprocess.Popen(
        [sys.executable, "-m", "tailrace.cli.main", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def start_shared(*arguments: str, **variables: str) -> subprocess.Popen[str]:
    """The same in the JVM of this worker, unless another command has it. Not for one that is killed or interrupted
    before it is through."""
    lent = SHARED.lend() if MOVING & set(arguments) else {}
    process = start(*arguments, **lent | variables)
    if lent:
        SHARED.lent_to(process)
    return process


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`tailrace` to its end. In the worker's JVM, unless the variables say how or whether it dies or finds one."""
    process = (start if OWN_JVM & variables.keys() else start_shared)(*arguments, **variables)
    try:
        output, errors = process.communicate(timeout=RUN_SECONDS)
    finally:
        process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def cuts(lake: Path) -> Cuts:
    return Cuts(LocalFolder(lake).journal("_tailrace/cuts"))


def wait_for_cuts(process: subprocess.Popen[str], lake: Path, count: int, seconds: float = 240) -> None:
    """Until that many cuts have been published; fails at once if the process ends before."""

    def reached() -> bool:
        assert process.poll() is None, process.communicate()
        return len(cuts(lake).all()) >= count

    wait_until(reached, seconds)


def interrupt(process: subprocess.Popen[str], seconds: float = 120) -> tuple[int, str, str]:
    """Ctrl-C, then its exit code and what it printed."""
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=seconds)
    return process.returncode, output, errors
