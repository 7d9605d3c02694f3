"""The JVM that Spark works in: started, found by pyspark, and gone when this process is.

pyspark starts one itself, and leaves it behind for ever when it is interrupted meanwhile: the JVM dies of a missing
file before it begins to watch whether we live. So it is started here, as a group of processes that ends with ours
however that ends, and pyspark connects to it.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

from tailrace import ending

TIDY = "-XX:-UsePerfData"
"""Otherwise a JVM that is killed leaves a file of figures in the machine's temporary folder."""
LOOPBACK = "127.0.0.1"
POLL_SECONDS = 0.05
_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"


def launch(options: Mapping[str, str], folder: Path, log_path: Path) -> Any:
    """Start one and connect to it. What it prints goes to `log_path`; it tells where it listens by a file in
    `folder`. A JVM that has started this process is taken instead."""
    if _PORT in os.environ:
        return launch_gateway()  # type: ignore[no-untyped-call]
    told = folder / "gateway"
    submitted = [each for name, value in options.items() for each in ("--conf", f"{name}={value}")]
    command = [str(Path(_find_spark_home(), "bin", "spark-submit")), *submitted]
    command += shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    # Spark's own page would listen to every machine otherwise.
    environment = {"SPARK_LAUNCHER_OPTS": TIDY, "SPARK_LOCAL_IP": LOOPBACK, "SPARK_PUBLIC_DNS": LOOPBACK, **os.environ}
    environment |= {"SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(told)}
    log_path.parent.mkdir(parents=True, exist_ok=True)
    output = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        process = ending.started(
            lambda: subprocess.Popen(
                command,
                # It watches this pipe: should we be killed, it ends by itself.
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=environment,
                # The terminal's Ctrl-C is meant for us.
                start_new_session=True,
            )
        )
    finally:
        os.close(output)
    while not told.exists():
        if process.poll() is not None:
            raise RuntimeError(f"the JVM ended with exit code {process.returncode}")
        time.sleep(POLL_SECONDS)
    with told.open("rb") as file:
        port, secret = read_int(file), UTF8Deserializer().loads(file)  # type: ignore[no-untyped-call]
    with _told_of(port, secret):
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    gateway.proc = process
    return gateway


@contextmanager
def _told_of(port: int, secret: str) -> Iterator[None]:
    """Inside, pyspark takes the JVM that listens there, as it does where a JVM has started Python."""
    os.environ |= {_PORT: str(port), _SECRET: secret}
    try:
        yield
    finally:
        del os.environ[_PORT], os.environ[_SECRET]
