"""The journal of notifications: one line each, oldest first, in `notifications.jsonl`.

When the file has become large it is put aside as `notifications.1.jsonl`, in place of the one before: the last
notifications are kept, never all. A line that cannot be read is passed over: a journal tells, it decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tailrace.model.notification import Notification
from tailrace.storage.files import append_line, sync

FILE_BYTES_MAX = 4 << 20


class Notifications:
    """Appended to by the one connector of the lake, read by any process."""

    def __init__(self, path: Path, file_bytes_max: int = FILE_BYTES_MAX) -> None:
        self._path = path
        self._file_bytes_max = file_bytes_max
        self._older = path.with_suffix(f".1{path.suffix}")

    def append(self, notification: Notification) -> None:
        """Durable when this returns."""
        with suppress(FileNotFoundError):
            if self._path.stat().st_size >= self._file_bytes_max:
                self._path.rename(self._older)
                sync(self._path.parent)
        append_line(self._path, notification.to_json())

    @property
    def files(self) -> list[Path]:
        """The newest first."""
        return [self._path, self._older]

    def all(self) -> list[Notification]:
        """Those that are kept, oldest first."""
        return [each for path in (self._older, self._path) for each in _read(path)]


def _read(path: Path) -> Iterator[Notification]:
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return
    for line in content[: content.rfind(b"\n") + 1].splitlines():
        with suppress(ValueError, KeyError, TypeError, AttributeError):
            yield Notification.from_json(line)
