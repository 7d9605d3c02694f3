"""A `tailrace serve` in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from tailrace.lake.home import LakeHome

PATIENCE_SECONDS = 300.0


class Server:
    """Runs inside a `with`."""

    def __init__(self, home: Path) -> None:
        self._command = [sys.executable, "-m", "tailrace.cli.main", "serve", "--home", str(home), "--log-json"]
        self._command += ["--listen", "127.0.0.1:0"]
        self.address = ""

    def __enter__(self) -> Server:
        self._process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
        )
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().removeprefix("listening on ").strip()
        return self

    @property
    def pid(self) -> int:
        return self._process.pid

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait(120)

    def wait_for_cut(self, lake: LakeHome) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while lake.cuts.newest() is None:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("no cut was published")
            time.sleep(0.1)
