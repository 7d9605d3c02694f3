"""How a run that ended in order left its lake, in `left.json`.

A start looks closely at every table of the lake and of the source, because a crash, or a person, may have changed any
of them since. A run that ends in order writes down what it would find. The next one takes that file away before all
else, so one that dies leaves none. What is still as the file says need not be looked at: one table
more then adds a fraction of a millisecond to a start.

The file only ever saves time. One that is damaged, or comes back after a power cut, is believed no further than it
agrees with what is there.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tailrace.lake.door import LakeTable, TableVersion
from tailrace.lake.stamp import Stamp
from tailrace.model.cut import CutTable

LOOK_SECONDS_MAX = 3600.0
"""After so long, the source's tables are looked at again in any case."""


@dataclass(frozen=True)
class LeftTable:
    """One table that the newest cut has."""

    version: int
    stamp: str
    mark: str
    """What the lake's format tells this version by."""
    is_untidy: bool

    @classmethod
    def of(cls, stored: LakeTable, found: TableVersion, *, is_untidy: bool) -> LeftTable | None:
        """None if it is not the newest version, or has no stamp."""
        mark = stored.mark(found.number)
        return cls(found.number, found.stamp.to_json(), mark, is_untidy) if found.stamp and mark is not None else None

    def still(self, stored: LakeTable, named: CutTable) -> TableVersion | None:
        """The version, if it is the one that a cut names, and the table has not been touched since."""
        stamp = Stamp.from_json(self.stamp)
        if self.version != named.version or stamp is None or not stamp.is_of(named):
            return None
        return TableVersion(self.version, stamp) if stored.mark(self.version) == self.mark else None

    def is_of(self, found: TableVersion, *, is_untidy: bool) -> bool:
        """Whether this says so already. If anything has touched the table since, the next start finds another mark."""
        return (self.version, self.is_untidy) == (found.number, is_untidy)


@dataclass(frozen=True)
class Left:
    """What there was at the end."""

    tables: Mapping[str, LeftTable]
    """By name, as cuts have them."""
    look: str | None
    """What the last look at the source's tables was taken under; None if another one may find more."""
    looked_at: float

    def has_look(self, key: str) -> bool:
        """Whether a look under the same conditions would find the same."""
        return self.look == key and 0 <= time.time() - self.looked_at < LOOK_SECONDS_MAX


class LeftFile:
    """`left.json`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def write(self, left: Left) -> None:
        """Need not survive a power cut."""
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(json.dumps({**vars(left), "tables": {name: vars(each) for name, each in left.tables.items()}}))

    def take(self) -> Left | None:
        """What the last run left, once; None if it did not end in order."""
        try:
            content = self._path.read_bytes()
            self._path.unlink()
        except FileNotFoundError:
            return None
        try:
            fields = json.loads(content)
            tables = {name: LeftTable(**table) for name, table in fields.pop("tables").items()}
            return Left(tables, **fields)
        except (ValueError, TypeError, AttributeError, KeyError):
            return None
