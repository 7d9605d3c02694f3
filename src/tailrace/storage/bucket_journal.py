"""A journal in a bucket: an object for each line, and one for all lines that were folded together.

    00000000000000000041.json    line 41, put if there is none of this name
    folded.json                  every line up to a number that is left; replaced as a whole, if no one else has done so

A line counts if its number is above the folded one's. To fold, the folded object is put first and the lines that it has
are deleted then: a crash between any two of these calls leaves lines that no longer count, and the next fold deletes
them. A reader lists first and reads the folded object then, so that it misses no line that is folded meanwhile.

What it costs to ask whether there is another line (`mark`, `end`): two looks, at the next line's name and at the folded
object. At four times a second these are some twenty million a month, about 8 dollars at S3's prices. A list each time
would be 50. A reader that is given a new journal each time lists.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tailrace.errors import DefiniteError, TransientError
from tailrace.storage.bucket_files import ObjectTag

if TYPE_CHECKING:
    from tailrace.storage.bucket import Bucket

FOLDED = "folded.json"
DIGITS = 20
_LINE = re.compile(rf"(\d{{{DIGITS}}})\.json")
RECENT = 8
READ_AT_ONCE = 16
LOOSE_MIN = 256
"""So many lines are objects of their own before they are folded, or a quarter of those that are folded."""
TRIES = 8
"""To read lines while another process folds them."""


@dataclass(frozen=True)
class _Folded:
    """The lines that were folded together. They do not change while the tag does not."""

    tag: ObjectTag | None = None
    upto: int = 0
    """The last line's number. The lines before it have the numbers before it."""
    lines: tuple[str, ...] = ()

    def after(self, number: int) -> tuple[str, ...]:
        before = self.upto - len(self.lines)
        return self.lines[max(0, number - before) :]


class BucketJournal:
    """Implements `Journal`. Remembers how far it has read; pickled, it forgets that."""

    def __init__(self, objects: Bucket, loose_min: int = LOOSE_MIN) -> None:
        self._objects = objects
        self._loose_min = loose_min
        self._folded = _Folded()
        self._last: int | None = None
        """The last line's number when this was last asked; None before."""

    def __reduce__(self) -> tuple[type[BucketJournal], tuple[Bucket, int]]:
        return BucketJournal, (self._objects, self._loose_min)

    @property
    def address(self) -> str:
        return self._objects.address

    @property
    def mark(self) -> tuple[int, int]:
        return 0, self.end

    @property
    def end(self) -> int:
        last = self._last or 0
        has_more = self._last is None or self._objects.look(_name(last + 1)) is not None
        if has_more or self._objects.tag_of(FOLDED) != self._folded.tag:
            numbers = self._numbers(last)
            self._read_folded()
            last = max([last, self._folded.upto, *numbers])
        self._last = last
        return last

    def lines(self, after: int = 0) -> list[str]:
        for _ in range(TRIES):
            numbers = self._numbers(after)
            self._read_folded()
            upto = self._folded.upto
            try:
                loose = self._read(number for number in numbers if number > upto)
            except FileNotFoundError:
                # It was folded meanwhile.
                continue
            self._last = max([self._last or 0, upto, *numbers])
            return [*self._folded.after(after), *loose]
        raise TransientError(f"{self.address}: its lines are replaced all the time", "it is tried again by itself")

    def each(self) -> Iterator[str]:
        return iter(self.lines())

    def recent(self) -> list[str]:
        end = self.end
        begin = max(self._folded.upto, end - RECENT)
        return self.lines(begin) if begin < end else list(self._folded.lines[-RECENT:])

    def first(self) -> str | None:
        self._read_folded()
        if self._folded.lines:
            return self._folded.lines[0]
        return next(iter(self.lines()), None)

    def append(self, line: str) -> None:
        number = self.end + 1
        content = line.encode()
        if not self._objects.put_new(_name(number), content) and not self._is_there(number, content):
            raise self._another()
        self._last = number
        if number - self._folded.upto >= max(self._loose_min, len(self._folded.lines) // 4):
            # The line is there; the next one tries this again.
            with suppress(TransientError):
                self._fold(self.lines(), number)

    def replace(self, lines: Sequence[str]) -> None:
        self._fold(lines, self.end)

    def _fold(self, lines: Sequence[str], upto: int) -> None:
        """These are the lines up to a number. No one else may have folded any since they were read."""
        content = json.dumps({"upto": upto, "lines": list(lines)}).encode()
        tag = self._objects.put_over(FOLDED, content, self._folded.tag)
        if tag is None:
            raise self._another()
        self._folded = _Folded(tag, upto, tuple(lines))
        self._objects.delete(_name(number) for number in self._numbers(0) if number <= upto)

    def _read_folded(self) -> None:
        """The folded lines, if they are others by now. Whoever lists lines does so before."""
        if self._objects.tag_of(FOLDED) == self._folded.tag:
            return
        found = self._objects.tagged(FOLDED)
        if found is not None:
            try:
                fields = json.loads(found.content)
                self._folded = _Folded(found.tag, int(fields["upto"]), tuple(fields["lines"]))
            except (ValueError, KeyError, TypeError):
                raise DefiniteError(f"{self.address}/{FOLDED} is damaged", "restore it from a backup") from None

    def _numbers(self, after: int) -> list[int]:
        """Of lines that are objects of their own, above a number, in their order."""
        names = (file.name for file in self._objects.list(after=_name(after) if after else ""))
        numbers = (int(found[1]) for name in names if (found := _LINE.fullmatch(name)))
        return sorted(number for number in numbers if number > after)

    def _read(self, numbers: Iterable[int]) -> list[str]:
        wanted = list(numbers)
        if len(wanted) < 2:
            return [self._objects.get(_name(number)).decode() for number in wanted]
        with ThreadPoolExecutor(min(READ_AT_ONCE, len(wanted))) as pool:
            return [content.decode() for content in pool.map(self._objects.get, map(_name, wanted))]

    def _is_there(self, number: int, content: bytes) -> bool:
        """Whether the line under this number is ours, after an answer that was lost."""
        try:
            return self._objects.get(_name(number)) == content
        except FileNotFoundError:
            return False

    def _another(self) -> DefiniteError:
        return DefiniteError(f"{self.address}: another process appends to it too", "stop the other tailrace")


def _name(number: int) -> str:
    return f"{number:0{DIGITS}d}.json"
