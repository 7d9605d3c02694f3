"""Consumers and pins: who still needs which transactions.

A consumer acknowledges, by name, the sequence number up to which it needs nothing more. A pin holds everything after a
sequence number for as long as it is there, as for a read that is under way. Both are durable when the call returns.
They belong to the process that makes them; the writer only reads them, when it deletes segments.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from urllib.parse import quote, unquote

from tailrace.errors import DefiniteError
from tailrace.log.files.disk import PRIVATE_FOLDER, LogDisk

_NAME_BYTES_MAX = 200


class Consumers:
    """The consumers and pins of the log at `path`, for any number of processes and threads."""

    def __init__(self, path: Path, disk: LogDisk | None = None) -> None:
        self._consumers = path / "consumers"
        self._pins = path / "pins"
        self._disk = disk or LogDisk()

    def acknowledge(self, name: str, seq: int) -> None:
        """`name` needs nothing up to `seq` any more. A number below the last one changes nothing."""
        if seq < 0:
            raise ValueError(f"{seq} is not a sequence number")
        file = self._file(self._consumers, name)
        with _alone(self._consumers):
            try:
                known = _seq_of(file)
            except (FileNotFoundError, DefiniteError):
                known = -1
            if seq > known:
                self._store(file, seq)

    def acknowledged(self) -> dict[str, int]:
        """What each consumer has acknowledged."""
        return _load(self._consumers)

    def forget(self, name: str) -> None:
        """The consumer no longer holds anything."""
        self._remove(self._file(self._consumers, name))

    def pin(self, name: str, after: int) -> None:
        """Keep every transaction after `after` until `unpin`. What is gone already stays gone: look afterwards."""
        file = self._file(self._pins, name)
        with _alone(self._pins):
            self._store(file, after)

    def unpin(self, name: str) -> None:
        self._remove(self._file(self._pins, name))

    def pins(self) -> dict[str, int]:
        """What each pin holds: everything after this sequence number."""
        return _load(self._pins)

    @contextmanager
    def unchanged(self) -> Iterator[None]:
        """No process acknowledges or pins meanwhile. BlockingIOError, at once, when one is just doing so."""
        with ExitStack() as alone:
            # Made with the log, but not here: this must work on a full disk.
            for folder in (self._consumers, self._pins):
                if folder.exists():
                    alone.enter_context(_alone(folder, fcntl.LOCK_NB))
            yield

    def _file(self, folder: Path, name: str) -> Path:
        quoted = quote(name, safe="")
        if not quoted or len(quoted) > _NAME_BYTES_MAX:
            raise ValueError(f"{name!r} cannot be a consumer's name: 1 to {_NAME_BYTES_MAX} letters")
        if not folder.exists():
            folder.mkdir(PRIVATE_FOLDER, exist_ok=True)
            self._disk.sync_directory(folder.parent)
        return folder / f"{quoted}.json"

    def _store(self, file: Path, seq: int) -> None:
        self._disk.publish(file, json.dumps({"seq": seq}).encode())

    def _remove(self, file: Path) -> None:
        with _alone(file.parent):
            if file.exists():
                self._disk.unlink(file)
                self._disk.sync_directory(file.parent)


@contextmanager
def _alone(folder: Path, how: int = 0) -> Iterator[None]:
    """One process at a time, for as long as a small file takes, so that an older number never replaces a newer one."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | how)
        yield
    finally:
        os.close(descriptor)


def _load(folder: Path) -> dict[str, int]:
    found = {}
    for file in sorted(folder.glob("*.json")):
        try:
            found[unquote(file.stem)] = _seq_of(file)
        except FileNotFoundError:
            continue
    return found


def _seq_of(file: Path) -> int:
    try:
        return int(json.loads(file.read_bytes())["seq"])
    except (ValueError, KeyError, TypeError):
        hint = "its owner writes it again when it acknowledges next; until then nothing is deleted from the log"
        raise DefiniteError(f"{file} is damaged", hint) from None
