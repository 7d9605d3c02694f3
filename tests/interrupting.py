"""A command that is interrupted at a moment of its life, and what it leaves."""

from __future__ import annotations

import signal
import subprocess
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from tests import journey
from tests.postgres import wait_until

MARK = "TAILRACE_INTERRUPTED_RUN"
SIGNALS = (signal.SIGINT, signal.SIGTERM)
END_SECONDS = 120.0


@dataclass(frozen=True)
class End:
    """How a command ended."""

    code: int
    output: str
    errors: str

    @property
    def last_line(self) -> str:
        return (self.errors.splitlines() or [""])[-1]


def interrupted(arguments: Sequence[str], folder: Path, after_seconds: float, number: signal.Signals) -> End:
    """Run a command, signal it so long after it has begun to listen, and wait until every process that it started is
    gone. Fails if one stays, or if a temporary file does."""
    mark, temporary = uuid.uuid4().hex, folder / "temporary"
    temporary.mkdir(exist_ok=True)
    process = journey.start(*arguments, TMPDIR=str(temporary), **{MARK: mark})
    try:
        wait_until(lambda: process.poll() is not None or _listens(process.pid), END_SECONDS)
        with suppress(subprocess.TimeoutExpired):
            process.wait(after_seconds)
        process.send_signal(number)
        output, errors = process.communicate(timeout=END_SECONDS)
    finally:
        process.kill()
    wait_until(lambda: not _marked(mark), END_SECONDS)
    assert list(temporary.iterdir()) == []
    return End(process.returncode, output, errors)


def require_quiet(end: End) -> None:
    """It said that it was interrupted and nothing else, or was through before."""
    told = end.output + end.errors
    assert not [word for word in ("Traceback", "Error", "Exception", "error:") if word in told], told
    assert end.code in (0, 130), end
    if end.code == 130:
        assert end.last_line.startswith(("interrupted", "stopped")), end


def _listens(pid: int) -> bool:
    """Whether the process has taken SIGTERM in hand, which Python itself leaves alone. Before that it is Python's."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    caught = next((line.split()[1] for line in status.splitlines() if line.startswith("SigCgt")), "0")
    return bool(int(caught, 16) >> (signal.SIGTERM - 1) & 1)


def _marked(mark: str) -> list[psutil.Process]:
    """What lives of all that a run has started, however it has changed its parents since."""
    found = []
    for each in psutil.process_iter():
        with suppress(psutil.Error):
            if each.environ().get(MARK) == mark and each.status() != psutil.STATUS_ZOMBIE:
                found.append(each)
    return found
