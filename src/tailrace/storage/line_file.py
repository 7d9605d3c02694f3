"""A journal in one local file, a line each.

A line is appended and fsynced. One that a crash cut short is ignored by readers and overwritten by the next append. To
let old lines go, the file is replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tailrace.storage.files import LINE_BYTES_MAX, append_line, replace


@dataclass(frozen=True)
class LineFile:
    """Implements `Journal`. Only the owner may read it."""

    path: Path
    recent_bytes: int = LINE_BYTES_MAX
    """How much of the file's end `recent` looks at."""

    @property
    def address(self) -> str:
        return str(self.path)

    @property
    def mark(self) -> tuple[int, int]:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return 0, 0
        return found.st_ino, found.st_size

    @property
    def end(self) -> int:
        try:
            return self.path.read_bytes().rfind(b"\n") + 1
        except FileNotFoundError:
            return 0

    def lines(self, after: int = 0) -> list[str]:
        return self._whole_lines(after)

    def each(self) -> Iterator[str]:
        try:
            with self.path.open("rb") as file:
                for line in file:
                    if line.endswith(b"\n"):
                        yield line[:-1].decode()
        except FileNotFoundError:
            return

    def recent(self) -> list[str]:
        start = max(0, self.mark[1] - self.recent_bytes)
        return self._whole_lines(start, is_cut=start > 0)

    def _whole_lines(self, start: int, *, is_cut: bool = False) -> list[str]:
        """The whole lines from a place on; the first one there may be `is_cut`."""
        try:
            with self.path.open("rb") as file:
                file.seek(start)
                content = file.read()
        except FileNotFoundError:
            return []
        begin = content.find(b"\n") + 1 if is_cut else 0
        return content[begin : content.rfind(b"\n") + 1].decode().split("\n")[:-1]

    def first(self) -> str | None:
        try:
            with self.path.open("rb") as file:
                line = file.readline()
        except FileNotFoundError:
            return None
        return line[:-1].decode() if line.endswith(b"\n") else None

    def append(self, line: str) -> None:
        append_line(self.path, line)

    def replace(self, lines: Sequence[str]) -> None:
        replace(self.path, "".join(f"{line}\n" for line in lines).encode())
