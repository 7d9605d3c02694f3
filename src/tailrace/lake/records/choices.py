"""Which tables a person has taken into a lake, or left out of it, since `sync` was told what to copy.

A list in `choices.json`, oldest first: of those that name a table, the last decides. It holds for the running connector
and for every later one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from tailrace.errors import DefiniteError
from tailrace.model.table import TableId
from tailrace.storage.files import read_json, write_json


@dataclass(frozen=True)
class Choice:
    """Take the tables that a pattern names, or leave them out."""

    pattern: str
    is_taken: bool


class Choices:
    """Written by commands, read by the connector."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, *choices: Choice) -> None:
        """Durable when this returns. What was chosen for the same patterns before is forgotten."""
        patterns = {each.pattern for each in choices}
        kept = [each for each in self.all() if each.pattern not in patterns]
        write_json(self._path, [list(astuple(each)) for each in [*kept, *choices]])

    def all(self) -> list[Choice]:
        try:
            return [Choice(str(pattern), bool(is_taken)) for pattern, is_taken in read_json(self._path) or ()]
        except (TypeError, ValueError):
            raise DefiniteError(f"{self._path} is damaged", "remove it, and choose again") from None

    def mark(self) -> int:
        """Changes whenever the choice does. Cheap."""
        try:
            return self._path.stat().st_mtime_ns
        except FileNotFoundError:
            return 0


def is_chosen(table: TableId, choices: Sequence[Choice], *, otherwise: bool) -> bool:
    """What the last choice says that names the table."""
    named = [each.is_taken for each in choices if table.matches(each.pattern)]
    return named[-1] if named else otherwise
