"""What a Spark of ours is started with. Whatever a person sets (`--spark-conf`) replaces our choice."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tailrace import ending
from tailrace.engine.spark import cluster, jvm, prepared
from tailrace.lake.door import LakeFormat
from tailrace.settings import LOCAL_SPARK, SparkSettings

PYTHON_VARIABLE = "PYSPARK_PYTHON"
HEAP_GB = (2, 8)
ATTEMPTS = 4
"""How often Spark tries a task, as on a cluster: a Python worker may be killed for want of memory."""
SOCKET_FOLDER_BYTES_MAX = 60
"""A Unix socket's path has at most 104 bytes on some systems, and Spark's names for its sockets have 42."""

SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.port": "0",
    "spark.ui.showConsoleProgress": "false",
    # What Spark remembers of past work is on the heap, whether a page shows it or not: a week has a million jobs.
    "spark.ui.retainedJobs": "100",
    "spark.ui.retainedStages": "100",
    "spark.ui.retainedTasks": "2000",
    # Collects what is forgotten, and so removes the files of shuffles that are over. An idle heap shrinks by it.
    "spark.cleaner.periodicGC.interval": "5min",
    # One description has every key of a live read's tail.
    "spark.sql.ui.retainedExecutions": "20",
    "spark.scheduler.mode": "FAIR",
}

_JVM = "-XX:+UseSerialGC -Xmn64m -XX:MinHeapFreeRatio=10 -XX:MaxHeapFreeRatio=30 -XX:-ShrinkHeapInSteps"
"""Rows do not pass through the heap, so it stays small, and gives back what a large shuffle took."""
BRIEF_JVM = f"{_JVM} -XX:TieredStopAtLevel=1"
LASTING_JVM = (
    f"{_JVM} -XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    "-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
"""The optimising compiler takes half the processor time of a Spark that runs for a minute: short runs
do without it, long ones compile only what stays hot."""

_LOCAL = re.compile(r"local(?:\[(?P<cores>\d+|\*)(?:,\s*(?P<attempts>\d+))?\])?")


def local_options(lake_format: LakeFormat) -> dict[str, str]:
    """The options of any Spark that works in this process's own JVM."""
    configured = lake_format.configure(builder_with({"spark.master": LOCAL_SPARK.master, **SETTINGS}))
    return {name: str(value) for name, value in configured._options.items()}


def session_options(lake_format: LakeFormat, settings: SparkSettings, folder: Path, *, brief: bool) -> dict[str, str]:
    """The options of one session; `folder` is where it keeps what it has on disk."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    tuning = os.environ.get("TAILRACE_JVM_OPTIONS", BRIEF_JVM if brief else LASTING_JVM)
    chosen = {
        **local_options(lake_format),
        "spark.master": retrying(settings.master),
        "spark.app.name": "tailrace",
        "spark.driver.memory": f"{heap_gb(memory_bytes)}g",
        "spark.driver.extraJavaOptions": f'{tuning} {jvm.TIDY} "-Djava.io.tmpdir={folder}"',
        "spark.sql.shuffle.partitions": str(os.cpu_count() or 2),
        "spark.local.dir": str(folder),
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.ui.enabled": str(settings.ui).lower(),
    }
    conf = dict(settings.conf)
    if cluster.is_cluster(settings.master):
        return chosen | cluster.worker_options(conf)
    return prepared.applied(chosen | _worker_options(settings, folder) | conf)


def _worker_options(settings: SparkSettings, folder: Path) -> dict[str, str]:
    """How Python workers on this machine are started and reached, and how they pass blobs on."""
    # Blobs stay on this machine. Compressing them would be a quarter of what a shuffle costs the JVM.
    options = {"spark.shuffle.compress": "false"}
    sockets = _socket_folder(folder)
    if sockets is not None:
        # More than halves the time of a small job. There is no secret then: the folder is closed to other users.
        options["spark.python.unix.domain.socket.enabled"] = "true"
        options["spark.python.unix.domain.socket.dir"] = str(sockets)
    if worker_python(settings) == sys.executable:
        # Another Python may not have this package before a task brings it.
        options[cluster.DAEMON_MODULE] = cluster.DAEMON
    return options


def _socket_folder(folder: Path) -> Path | None:
    """`folder` or a short one in its place; None where this machine has none that is short enough."""
    if len(os.fsencode(folder)) <= SOCKET_FOLDER_BYTES_MAX:
        return folder
    short = ending.temporary_folder("tailrace-")
    return short if len(os.fsencode(short)) <= SOCKET_FOLDER_BYTES_MAX else None


def worker_python(settings: SparkSettings) -> str:
    """The Python that works for a session: the one that was asked for, or our own."""
    return dict(settings.conf).get("spark.pyspark.python") or os.environ.get(PYTHON_VARIABLE) or sys.executable


def builder_with(options: Mapping[str, str]) -> Any:
    builder = SparkSession.builder
    for name, value in options.items():
        builder = builder.config(name, value)
    return builder


def heap_gb(memory_bytes: int) -> int:
    """The JVM's heap at most: a quarter of the machine's memory, within bounds. A value of 200 MB needs more than two,
    because Spark has several copies of it at once. Memory that is not needed is not taken."""
    return max(HEAP_GB[0], min(HEAP_GB[1], memory_bytes // 4 >> 30))


def retrying(master: str) -> str:
    """The master's name with this many attempts at a task: a local Spark has one unless its name says more."""
    found = _LOCAL.fullmatch(master)
    if found is None or found["attempts"]:
        return master
    return f"local[{found['cores'] or 1},{ATTEMPTS}]"


def local_cores(master: str) -> int | None:
    """How many cores a local Spark has by its master's name; None for a cluster."""
    found = _LOCAL.fullmatch(master)
    if found is None:
        return None
    cores = found["cores"] or "1"
    return (os.cpu_count() or 1) if cores == "*" else int(cores)
