"""What differs between two offsets, field by field. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tailrace.offsets.layout import Wire, shown


class Change(StrEnum):
    """What became of a field."""

    ADDED = "added"
    REMOVED = "removed"
    MODIFIED = "modified"


@dataclass(frozen=True)
class Difference:
    """One field that is not the same. A field that is not there is None, as one is that holds null."""

    field: str
    change: Change
    before: Any
    after: Any

    def __str__(self) -> str:
        before = "not there" if self.change is Change.ADDED else _value(self.before)
        after = "removed" if self.change is Change.REMOVED else _value(self.after)
        return f"{self.field}: {before} → {after}"


def diff(before: Wire | None, after: Wire | None) -> list[Difference]:
    """By name. None is an offset that is not there: everything was added, or removed."""
    old, new = before or {}, after or {}
    found = []
    for name in sorted({*old, *new}):
        if name not in old:
            found.append(Difference(name, Change.ADDED, None, new[name]))
        elif name not in new:
            found.append(Difference(name, Change.REMOVED, old[name], None))
        elif not _is_same(old[name], new[name]):
            found.append(Difference(name, Change.MODIFIED, old[name], new[name]))
    return found


def _value(value: Any) -> str:
    return "null" if value is None else shown(value)


def _is_same(old: Any, new: Any) -> bool:
    """1 is not true, though Python thinks so."""
    return type(old) is type(new) and old == new
