"""A `tailrace sync` in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

from tailrace.lake.home import LakeHome

PATIENCE_SECONDS = 900.0


class Syncing:
    """Runs inside a `with`."""

    def __init__(self, dsn: str, lake: Path) -> None:
        self._lake = lake
        self._command = [sys.executable, "-m", "tailrace.cli.main", "sync", dsn, str(lake)]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Syncing:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        return self

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGINT)
        self._process.wait(120)

    def wait_for_cut(self) -> None:
        """Until every table is copied."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.cuts:
            assert self._process is not None
            if self._process.poll() is not None:
                raise RuntimeError("the sync ended")
            if time.monotonic() > deadline:
                raise TimeoutError("no cut was published")
            time.sleep(0.1)

    @property
    def cuts(self) -> int:
        """How many have been published."""
        return len(self.cut_times())

    def cut_times(self) -> list[float]:
        """When each was recorded, oldest first, as `time.time` gives it."""
        return [cut.published_us / 1e6 for cut in LakeHome(self._lake).cuts.all()]
