"""The states of a lake's tables, and up to which commit they can be read: two files, each replaced as a whole.

The connector writes them; any process reads them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tailrace.errors import DefiniteError
from tailrace.model.rows.text_key import TextKey
from tailrace.model.table import TableId
from tailrace.model.table_state import Ended, TableRecord, TableState
from tailrace.storage.door import Storage


class TableStates:
    """`tables.json`: stored before what it says takes effect."""

    def __init__(self, storage: Storage, name: str) -> None:
        self._storage = storage
        self._name = name

    def load(self) -> dict[TableId, TableRecord]:
        """Every table the lake knows; none for a new lake."""
        try:
            content = self._content()
            listed = json.loads(content) if content is not None else []
            return {TableId(each.pop("namespace"), each.pop("name")): _record(each) for each in listed}
        except (ValueError, TypeError, KeyError, AttributeError):
            message = f"{self._storage.address}/{self._name} is damaged"
            raise DefiniteError(message, "restore it from a backup") from None

    def digest(self) -> str:
        """Of what is stored."""
        return hashlib.sha256(self._content() or b"").hexdigest()

    def _content(self) -> bytes | None:
        """None where there is no file."""
        try:
            return self._storage.get(self._name)
        except FileNotFoundError:
            return None

    def store(self, tables: Mapping[TableId, TableRecord]) -> None:
        """Durable when this returns."""
        listed = [asdict(table) | asdict(record) for table, record in sorted(tables.items())]
        self._storage.put(self._name, json.dumps(listed, indent=2).encode(), is_private=True)


class VouchedFile:
    """`vouched`: up to which commit the log can be laid over the lake's tables.

    A statement can change all rows of a table without a word in the log. The connector looks at the source's
    definitions again and again, and writes down the last commit at which none had moved. Readers of the log go no
    further. The file may be lost or old, after a power cut too: readers then go less far. It is never ahead of what was
    seen.
    """

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


def _record(fields: dict[str, Any]) -> TableRecord:
    text_key = fields.pop("text_key", None)
    found = TextKey.from_json(text_key) if text_key is not None else None
    ended = tuple(Ended(**each) for each in fields.pop("ended", ()))
    return TableRecord(TableState(fields.pop("state")), text_key=found, ended=ended, **fields)
