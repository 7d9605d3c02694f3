"""Up to which commit the log can be laid over the lake's tables: one number in `vouched`.

A statement can change all rows of a table without a word in the log. The connector looks at the source's definitions
again and again, and writes down the last commit at which none had moved. Readers of the log go no further.

The file may be lost or old, after a power cut too: readers then go less far. It is never ahead of what was seen.
"""

from __future__ import annotations

import os
from pathlib import Path


class VouchedFile:
    """`vouched`. Written by the connector, read by any process."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> int:
        """An ordinal; 0 if nothing is known."""
        try:
            return int(self._path.read_bytes())
        except (FileNotFoundError, ValueError):
            return 0

    def store(self, ordinal: int) -> None:
        """Readers find the old number or this one."""
        draft = self._path.with_name(self._path.name + ".new")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(str(ordinal))
        draft.rename(self._path)
