"""Consumers and pins: who still needs which transactions.

A consumer acknowledges, by name, the sequence number up to which it needs nothing more. A pin holds everything behind a
sequence number for as long as it is there, as for a read that is under way. Both are durable when the call returns
and belong to whoever makes them; the writer only reads them, when it deletes segments.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import quote, unquote

from tailrace.log.disk import Disk


class Consumers:
    """The consumers and pins of the log at `path`. Any process may have one; none waits for another."""

    def __init__(self, path: Path, disk: Disk | None = None) -> None:
        self._consumers = path / "consumers"
        self._pins = path / "pins"
        self._disk = disk or Disk()

    def acknowledge(self, name: str, seq: int) -> None:
        """`name` needs nothing up to `seq` any more. A number below the last one changes nothing."""
        if seq > self.acknowledged().get(name, -1):
            self._store(self._consumers, name, seq)

    def acknowledged(self) -> dict[str, int]:
        """What each consumer has acknowledged."""
        return _load(self._consumers)

    def forget(self, name: str) -> None:
        """The consumer no longer holds anything."""
        self._remove(self._consumers, name)

    def pin(self, name: str, after: int) -> None:
        """Keep every transaction behind `after` until `unpin`."""
        self._store(self._pins, name, after)

    def unpin(self, name: str) -> None:
        self._remove(self._pins, name)

    def pins(self) -> dict[str, int]:
        """What each pin holds: everything behind this sequence number."""
        return _load(self._pins)

    def _store(self, folder: Path, name: str, seq: int) -> None:
        if not folder.exists():
            folder.mkdir(exist_ok=True)
            self._disk.sync_directory(folder.parent)
        self._disk.publish(folder / _file_name(name), json.dumps({"seq": seq}).encode())

    def _remove(self, folder: Path, name: str) -> None:
        try:
            os.stat(folder / _file_name(name))
        except FileNotFoundError:
            return
        self._disk.unlink(folder / _file_name(name))
        self._disk.sync_directory(folder)


def _file_name(name: str) -> str:
    return quote(name, safe="") + ".json"


def _load(folder: Path) -> dict[str, int]:
    found = {}
    for file in sorted(folder.glob("*.json")):
        try:
            found[unquote(file.stem)] = int(json.loads(file.read_bytes())["seq"])
        except FileNotFoundError:
            continue
    return found
