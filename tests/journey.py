"""Running `tailrace` as a user does: a process, its exit code, what it prints."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.postgres import wait_until

from tailrace.engine.spark.options import BRIEF_JVM
from tailrace.lake.cuts import Cuts

RUN_SECONDS = 240
QUICK_JVM = BRIEF_JVM
NO_SPARK = {"TAILRACE_JVM_OPTIONS": "-Xms999g"}
"""With these no Spark starts, so what is told instead was found before. (Spark has unknown options ignored.)"""


def start(*arguments: str, **variables: str) -> subprocess.Popen[str]:
    """`tailrace` in a process of its own, with these environment variables."""
    environment = os.environ | {"TAILRACE_JVM_OPTIONS": QUICK_JVM, "COLUMNS": "200"} | variables
    return subprocess.Popen(
        [sys.executable, "-m", "tailrace.cli.main", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """`tailrace` to its end."""
    process = start(*arguments, **variables)
    try:
        output, errors = process.communicate(timeout=RUN_SECONDS)
    finally:
        process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def cuts(lake: Path) -> Cuts:
    return Cuts(lake / "_tailrace" / "cuts.jsonl")


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
