"""Where in a file of rows each key lies: sorted codes of the keys, and their positions.

What a code is, `model.rows.codes` says.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import xxhash

from tailrace.model.rows.codes import KeyCodes, key_codes
from tailrace.storage.files import sync

DRAFT = ".new"
"""How the name of an index ends that is being saved."""
_ROWS_FILE, _CHECKSUM = b"rows_file", b"checksum"


@dataclass(frozen=True)
class KeyIndex:
    """The keys of one file of rows."""

    codes: KeyCodes
    """Sorted by their first half."""
    positions: np.ndarray
    is_mapped: bool = False
    """It lies in a file; only what is looked at takes memory."""

    @classmethod
    def of(cls, columns: Sequence[pa.Array]) -> KeyIndex:
        return cls.of_codes(key_codes(columns))

    @classmethod
    def of_codes(cls, codes: KeyCodes) -> KeyIndex:
        """Of the codes of a file's rows, in order."""
        if len(codes) and (codes.first[1:] >= codes.first[:-1]).all():
            return cls(codes, np.arange(len(codes), dtype=np.uint32))
        order = np.argsort(codes.first, kind="stable")
        return cls(codes.take(order), order.astype(np.uint32))

    def find(self, wanted: KeyCodes) -> tuple[np.ndarray, np.ndarray]:
        """Every meeting of a wanted key and a row: which of the wanted, and the row's position."""
        # In order, neighbours are found in the same part of memory.
        order = np.argsort(wanted.first)
        first = self.codes.first.searchsorted(wanted.first[order], "left")
        counts = self.codes.first.searchsorted(wanted.first[order], "right") - first
        which = np.repeat(order, counts)
        # For each wanted key in turn: its first place, the next one, …
        places = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts) + np.repeat(first, counts)
        if self.codes.second is not None and wanted.second is not None:
            same = self.codes.second[places] == wanted.second[which]
            which, places = which[same], places[same]
        return which, self.positions[places].astype(np.int64)

    def save(self, path: Path, rows_file: str) -> None:
        """There as a whole or not at all, also after a power cut. `rows_file` tells the file of rows from every other
        that may ever have its name."""
        columns = {"first": self.codes.first, "positions": self.positions}
        if self.codes.second is not None:
            columns["second"] = self.codes.second
        table = pa.table({name: pa.array(values) for name, values in columns.items()})
        table = table.replace_schema_metadata({_ROWS_FILE: rows_file, _CHECKSUM: _checksum(columns)})
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{uuid.uuid4()}{DRAFT}")
        with pa.OSFile(str(draft), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        sync(draft)
        draft.rename(path)

    @classmethod
    def load(cls, path: Path, rows_file: str, *, is_checked: bool = False) -> KeyIndex | None:
        """A saved one, mapped into memory; None if there is none, it is of other rows or damaged. To find that out
        reads all of it, which need not be done again."""
        try:
            table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
        except (OSError, pa.ArrowException):
            return None
        told = table.schema.metadata or {}
        if told.get(_ROWS_FILE) != rows_file.encode():
            return None
        found = {name: table.column(name).combine_chunks().to_numpy() for name in table.column_names}
        if not is_checked and told.get(_CHECKSUM) != _checksum(found).encode():
            return None
        return cls(KeyCodes(found["first"], found.get("second")), found["positions"], is_mapped=True)


def identity_of(path: Path) -> str | None:
    """Tells a saved index from one that is put in its place; None when there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return f"{found.st_size} {found.st_mtime_ns}"


@dataclass(frozen=True)
class SavedIndex:
    """An index in a local folder."""

    path: Path
    bytes: int
    changed: float
    """When, in seconds since 1970."""

    @property
    def rows_file(self) -> str | None:
        """The name of the file of rows that it is of; None while it is being saved."""
        return None if self.path.suffix == DRAFT else self.path.stem

    def delete(self) -> None:
        self.path.unlink(missing_ok=True)


def saved_indexes(folder: Path) -> list[SavedIndex]:
    """What lies in a folder of indexes, finished or not."""
    if not folder.is_dir():
        return []
    return [SavedIndex(path, found.st_size, found.st_mtime) for path in folder.iterdir() if (found := path.stat())]


def _checksum(columns: Mapping[str, np.ndarray]) -> str:
    digest = xxhash.xxh3_64()
    for name in sorted(columns):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(columns[name]).data)
    return digest.hexdigest()
