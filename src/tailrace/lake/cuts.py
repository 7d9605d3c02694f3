"""The published cuts of a lake: a journal, one line each, oldest first.

A line is appended durably after every table of a batch has been published, so a cut in the journal is a cut in the
lake. To forget old cuts the journal is replaced as a whole, before what only they need is deleted.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from tailrace.errors import DefiniteError
from tailrace.model.cut import CutOutline, PublishedCut
from tailrace.storage.door import Journal


class Cuts:
    """Read by any process, appended to by the one connector of the lake."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    @property
    def mark(self) -> tuple[int, int]:
        """Changes whenever there is another cut; perhaps also when old ones have left."""
        return self._journal.mark

    def all(self) -> list[PublishedCut]:
        """Every cut, oldest first."""
        return self.after(0)

    def outlines(self) -> Iterator[CutOutline]:
        """Every cut without its tables, oldest first. Thousands cost no more memory than one."""
        with self._told_of_damage():
            yield from map(CutOutline.from_json, self._journal.each())

    def last(self, count: int, wanted: Callable[[CutOutline], bool] = lambda cut: True) -> list[PublishedCut]:
        """The newest cuts that are wanted, oldest first. Only these are in memory."""
        with self._told_of_damage():
            lines = deque((each for each in self._journal.each() if wanted(CutOutline.from_json(each))), maxlen=count)
            return [PublishedCut.from_json(line) for line in lines]

    def newest(self, wanted: Callable[[PublishedCut], bool] = lambda cut: True) -> PublishedCut | None:
        """The newest cut that is `wanted`; looks at the last ones first."""
        for read in (self._journal.recent, self._journal.lines):
            found = next((cut for cut in reversed(self._parsed(read)) if wanted(cut)), None)
            if found is not None:
                return found
        return None

    def newest_with(self, table: str) -> PublishedCut | None:
        """The newest cut that names a table, by its text form. Others are not parsed: a lake may keep thousands, each
        with a thousand tables."""
        named = f"{json.dumps(table)}:["
        for read in (self._journal.recent, self._journal.lines):
            for line in reversed([line for line in read() if named in line]):
                (cut,) = self._parsed(partial(list, [line]))
                if table in cut.tables:
                    return cut
        return None

    def oldest(self) -> PublishedCut | None:
        """The oldest cut that is kept."""
        line = self._journal.first()
        return None if line is None else PublishedCut.from_json(line)

    def has(self, cut: PublishedCut) -> bool:
        """Whether a cut that was read earlier is still there."""
        return cut.to_json() in self._journal.lines()

    @property
    def end(self) -> int:
        """The place after the newest cut, for `after`."""
        return self._journal.end

    def after(self, end: int) -> list[PublishedCut]:
        """The cuts that were appended since this was the `end`."""
        return self._parsed(lambda: self._journal.lines(end))

    def _parsed(self, read: Callable[[], Iterable[str]]) -> list[PublishedCut]:
        with self._told_of_damage():
            return [PublishedCut.from_json(line) for line in read()]

    @contextmanager
    def _told_of_damage(self) -> Iterator[None]:
        """A definite error for a line that is no cut."""
        try:
            yield
        except (ValueError, KeyError, TypeError):
            message = f"{self._journal.address} is damaged"
            raise DefiniteError(message, "restore it from a backup, or start a new lake") from None

    def append(self, cut: PublishedCut) -> None:
        """Durable when this returns."""
        self._journal.append(cut.to_json())

    def replace(self, cuts: Sequence[PublishedCut]) -> None:
        """These are all from now on, oldest first. Durable when this returns; readers find the old ones or these."""
        self._journal.replace([cut.to_json() for cut in cuts])
