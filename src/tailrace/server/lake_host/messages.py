"""What another process's connector says in its lake's messages, heard as it is written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

LOOK_BYTES_MAX = 1 << 20
"""How much is read at once: what was said long before we came is not heard."""
EVENTS = "tailrace.connector"
"""The logger that every event of a connector is a message of."""


@dataclass(frozen=True)
class Said:
    """An event, as a message has it."""

    kind: str
    fields: dict[str, Any]
    time: float
    """Seconds since 1970."""


class MessageTail:
    """The end of one file of JSON lines, which is put aside and begun again when it has become large. One thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = 0
        """The inode of what was read last."""
        self._end = 0

    def read(self) -> list[Said]:
        """What has been said since the last time; the first time, the last things that were."""
        try:
            found = self._path.stat()
            if found.st_ino != self._file or found.st_size < self._end:
                self._file, self._end = found.st_ino, 0
            if found.st_size == self._end:
                return []
            begin = max(self._end, found.st_size - LOOK_BYTES_MAX)
            with self._path.open("rb") as file:
                file.seek(begin)
                content = file.read(found.st_size - begin)
        except FileNotFoundError:
            return []
        whole = content.rfind(b"\n") + 1
        self._end = begin + whole
        return list(_events(content[:whole]))


def _events(content: bytes) -> Iterator[Said]:
    for line in content.splitlines():
        try:
            message = json.loads(line)
            if message["logger"] == EVENTS:
                # Of this machine's clock, without a zone.
                time = datetime.fromisoformat(message["time"]).timestamp()
                yield Said(message["message"], dict(message["event"]), time)
        except (ValueError, TypeError, KeyError):
            # Half a line, or of another kind.
            continue
