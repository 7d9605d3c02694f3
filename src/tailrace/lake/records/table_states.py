"""The states of a lake's tables: one file, replaced as a whole.

The connector writes it, before what it says takes effect; any process reads it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tailrace.errors import DefiniteError
from tailrace.model.table import TableId
from tailrace.model.table_state import Ended, TableRecord, TableState
from tailrace.model.text_key import TextKey
from tailrace.storage.files import read_json, write_json


class TableStates:
    """`tables.json`."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> dict[TableId, TableRecord]:
        """Every table the lake knows; none for a new lake."""
        try:
            return {
                TableId(each.pop("namespace"), each.pop("name")): _record(each) for each in read_json(self._path) or []
            }
        except (ValueError, TypeError, KeyError, AttributeError):
            raise DefiniteError(f"{self._path} is damaged", "restore it from a backup") from None

    def digest(self) -> str:
        """Of what is stored."""
        return hashlib.sha256(self._path.read_bytes() if self._path.exists() else b"").hexdigest()

    def store(self, tables: Mapping[TableId, TableRecord]) -> None:
        """Durable when this returns."""
        listed = [asdict(table) | asdict(record) for table, record in sorted(tables.items())]
        write_json(self._path, listed)


def _record(fields: dict[str, Any]) -> TableRecord:
    text_key = fields.pop("text_key", None)
    found = TextKey.from_json(text_key) if text_key is not None else None
    ended = tuple(Ended(**each) for each in fields.pop("ended", ()))
    return TableRecord(TableState(fields.pop("state")), text_key=found, ended=ended, **fields)
