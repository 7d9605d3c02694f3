"""The published cuts of a lake: one line each in `cuts.jsonl`, oldest first.

A line is appended and fsynced after every table of a batch has been published, so a cut in the
file is a cut in the lake. A line that a crash cut short is ignored by readers and overwritten
by the next append. To forget old cuts the file is replaced as a whole, before what only they need is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tailrace.errors import DefiniteError
from tailrace.files import replace
from tailrace.lake.files import LINE_BYTES_MAX, append_line
from tailrace.model.cut import PublishedCut

RECENT_BYTES = LINE_BYTES_MAX
"""What is looked at first for a cut."""


class Cuts:
    """Read by any process, appended to by the one connector of the lake."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @property
    def mark(self) -> tuple[int, int]:
        """Another one when there is another cut; perhaps also when old ones have left."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return 0, 0
        return found.st_ino, found.st_size

    def all(self) -> list[PublishedCut]:
        """Every cut, oldest first."""
        return self._parse(0)

    def newest(self, wanted: Callable[[PublishedCut], bool] = lambda cut: True) -> PublishedCut | None:
        """The newest cut that is `wanted`; looks at the end of the file first."""
        for last_bytes in (RECENT_BYTES, None):
            part = self.all() if last_bytes is None else self._recent(last_bytes)
            found = next((cut for cut in reversed(part) if wanted(cut)), None)
            if found is not None:
                return found
        return None

    def oldest(self) -> PublishedCut | None:
        """The oldest cut that is kept."""
        try:
            with self._path.open("rb") as file:
                line = file.readline()
        except FileNotFoundError:
            return None
        return PublishedCut.from_json(line.decode()) if line.endswith(b"\n") else None

    def has(self, cut: PublishedCut) -> bool:
        """Whether a cut that was read earlier is still there."""
        try:
            return f"{cut.to_json()}\n".encode() in self._path.read_bytes()
        except FileNotFoundError:
            return False

    @property
    def end(self) -> int:
        """Where the next cut will be written: after the last whole line."""
        try:
            return self._path.read_bytes().rfind(b"\n") + 1
        except FileNotFoundError:
            return 0

    def after(self, end: int) -> list[PublishedCut]:
        """The cuts that were appended since this was the `end`."""
        return self._parse(end)

    def _recent(self, last_bytes: int) -> list[PublishedCut]:
        """The whole lines of the last bytes."""
        start = max(0, self.mark[1] - last_bytes)
        return self._parse(start, is_cut=start > 0)

    def _parse(self, start: int, *, is_cut: bool = False) -> list[PublishedCut]:
        """The whole lines from a place on; the first one there may be `is_cut`."""
        try:
            with self._path.open("rb") as file:
                file.seek(start)
                content = file.read()
        except FileNotFoundError:
            return []
        begin = content.find(b"\n") + 1 if is_cut else 0
        whole = content[begin : content.rfind(b"\n") + 1]
        try:
            return [PublishedCut.from_json(line) for line in whole.decode().splitlines()]
        except (ValueError, KeyError, TypeError):
            raise DefiniteError(f"{self._path} is damaged", "restore it from a backup, or start a new lake") from None

    def append(self, cut: PublishedCut) -> None:
        """Durable when this returns."""
        append_line(self._path, cut.to_json())

    def replace(self, cuts: Sequence[PublishedCut]) -> None:
        """These are all from now on, oldest first. Durable when this returns; readers find the old ones or these."""
        replace(self._path, "".join(f"{cut.to_json()}\n" for cut in cuts).encode())
