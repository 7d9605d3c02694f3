"""Files of messages, read from their end: JSON lines, the file that is written first, then those that were put aside.

A few blocks are in memory at a time, never a file. A place in the files is a file's number on its disk and an offset in
it, so a place stays what it was when files are put aside.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tailrace.connector.messages import FILES_KEPT

BLOCK_BYTES = 1 << 16
LINE_BYTES_MAX = 1 << 18
"""Of a line that is much longer, the beginning is read."""
_PLACE = re.compile(r"([0-9a-f]{1,16})-([0-9]{1,15})")


@dataclass(frozen=True)
class Place:
    """Where a line begins."""

    file: int
    offset: int

    def __str__(self) -> str:
        return f"{self.file:x}-{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Place:
        """ValueError for anything that is no place."""
        found = _PLACE.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no place in files of messages")
        return cls(int(found[1], 16), int(found[2]))


@dataclass(frozen=True)
class MessageLine:
    """One line, without its end."""

    place: Place
    content: bytes


def message_files(path: Path) -> list[Path]:
    """Where messages are that are written to a path, the newest first."""
    return [path, *(path.with_name(f"{path.name}.{number}") for number in range(1, FILES_KEPT + 1))]


def lines_before(paths: Sequence[Path], before: Place | None = None) -> Iterator[MessageLine]:
    """Whole lines of files, the newest first: all of them, or those before a place. None where the place's file is
    gone: those before it are gone, too."""
    with ExitStack() as stack:
        # All are opened first: what is put aside meanwhile is read all the same.
        files: dict[int, tuple[BinaryIO, int]] = {}
        for each in paths:
            try:
                file: BinaryIO = stack.enter_context(each.open("rb"))
            except FileNotFoundError:
                continue
            found = os.fstat(file.fileno())
            files.setdefault(found.st_ino, (file, found.st_size))
        has_begun = before is None
        for number, (file, size) in files.items():
            end = size
            if before is not None and number == before.file:
                has_begun, end = True, min(size, before.offset)
            if has_begun:
                yield from _backwards(file, number, end)


def _backwards(file: BinaryIO, number: int, end: int) -> Iterator[MessageLine]:
    # What was read of a line whose beginning was not.
    kept, start = b"", end
    while start > 0:
        size = min(BLOCK_BYTES, start)
        start -= size
        file.seek(start)
        kept = file.read(size) + kept
        first = kept.find(b"\n") + 1 if start > 0 else 0
        if start > 0 and not first:
            kept = _shortened(kept)
            continue
        # After the last end there is a line that is being written, or that a crash has cut short.
        whole, kept = kept[first:].split(b"\n")[:-1], _shortened(kept[:first])
        offset, lines = start + first, []
        for content in whole:
            lines.append(MessageLine(Place(number, offset), content))
            offset += len(content) + 1
        yield from reversed(lines)


def _shortened(line: bytes) -> bytes:
    return line if len(line) <= LINE_BYTES_MAX else line[:LINE_BYTES_MAX] + b"\n"
