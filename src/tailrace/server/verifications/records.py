"""What is kept of verifications that a server ran: a file for each, in the home of the lake, the last of them.

A file is written when one begins and when it ends, so one whose process died in between is seen as such later.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from tailrace.lake.home import LakeHome
from tailrace.storage.files import read_json, write_json

KEPT_MAX = 20


class VerificationState(StrEnum):
    """How far a verification is."""

    RUNNING = "running"
    """Next: any other."""
    DONE = "done"
    """It has a report."""
    STOPPED = "stopped"
    """A person asked for that."""
    FAILED = "failed"
    """The error says why."""
    INTERRUPTED = "interrupted"
    """The server ended first, or died."""


@dataclass(frozen=True)
class VerificationRecord:
    """One verification of a lake."""

    id: int
    state: VerificationState
    who: str
    tables: tuple[str, ...]
    """Patterns; none for all."""
    began_us: int
    process: int
    """Which ran it."""
    ended_us: int | None = None
    report: Mapping[str, Any] | None = None
    error: str | None = None
    hint: str | None = None


class VerificationFiles:
    """Of one lake. One thread at a time writes; any reads."""

    def __init__(self, home: LakeHome) -> None:
        self._folder: Path = home.runs.verifications

    def all(self) -> list[VerificationRecord]:
        """Newest first. What no process runs any more is interrupted."""
        return [each for path in self._paths() if (each := _read(path)) is not None]

    def find(self, number: int) -> VerificationRecord | None:
        return _read(self._path(number))

    def next_id(self) -> int:
        return max((int(path.stem) for path in self._paths()), default=0) + 1

    def write(self, record: VerificationRecord) -> None:
        """Durable when this returns; the oldest give way."""
        self._folder.mkdir(0o700, exist_ok=True)
        write_json(self._path(record.id), asdict(record))
        for path in self._paths()[KEPT_MAX:]:
            path.unlink(missing_ok=True)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number}.json"

    def _paths(self) -> list[Path]:
        found = [path for path in self._folder.glob("*.json") if path.stem.isdigit()]
        return sorted(found, key=lambda path: -int(path.stem))


def _read(path: Path) -> VerificationRecord | None:
    fields = read_json(path)
    if fields is None:
        return None
    fields |= {"state": VerificationState(fields["state"]), "tables": tuple(fields["tables"])}
    record = VerificationRecord(**fields)
    is_over = record.state is VerificationState.RUNNING and not _may_run(record.process)
    return replace(record, state=VerificationState.INTERRUPTED) if is_over else record


def _may_run(process: int) -> bool:
    """Whether another process may be at it. Our own says itself what it runs: the one before it may have had the same
    number, as in a container."""
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
