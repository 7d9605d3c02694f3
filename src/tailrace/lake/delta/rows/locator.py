"""Where keys lie in a Delta table: in which file, at which position.

Files are passed over by the bounds of the first key column; in each that is left, the keys are looked up in the file's
index. The index of a large file is kept in the table's local cache, so that a few keys cost a few pages of it and
not the whole key column. It is derived: whatever happens to it, it is made again. Rows of a table without a key are
their own keys: their index is over all columns.
"""

from __future__ import annotations

import datetime
import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from tailrace.failpoint import failpoint
from tailrace.lake.delta.file_names import last_part, name_of
from tailrace.lake.delta.metadata import Field
from tailrace.lake.delta.rows._damage import damaged
from tailrace.lake.delta.rows.deletion_vectors import positions_in, read_vector
from tailrace.lake.delta.rows.row_files import SIZES, read_batches, read_columns
from tailrace.lake.key_index import KeyIndex, identity_of
from tailrace.model.rows.codes import KeyCodes, key_codes
from tailrace.storage.door import Storage

INDEX_FOLDER = "_tailrace_keys"
"""Readers and VACUUM pass over folders that begin so."""
REMEMBERED_ROWS_MAX = 4_000_000
"""Of files whose indexes are in memory."""
REMEMBERED_FILES_MAX = 512
"""Of any: one that is mapped hardly takes memory."""

Action = Mapping[str, Any]


@dataclass(frozen=True)
class Places:
    """Meetings of wanted keys and live rows."""

    which: np.ndarray
    """Of the wanted keys."""
    file: np.ndarray
    """Of the files that were given."""
    position: np.ndarray

    def counts(self, wanted: int) -> np.ndarray:
        """How many rows each wanted key has."""
        return np.bincount(self.which, minlength=wanted)


class _Remembered:
    """Indexes of files that this process has looked at lately, of all tables together: a worker gets to see any. Any
    thread."""

    def __init__(self) -> None:
        self._indexes: OrderedDict[tuple[str, str], KeyIndex] = OrderedDict()
        self._checked: dict[str, str] = {}
        """Saved indexes that were read to their ends, and what tells them from others in their places."""
        self._lock = threading.Lock()

    def get(self, file: tuple[str, str], load: Callable[[], KeyIndex]) -> KeyIndex:
        """The index of a file for a key, loaded where it is not known."""
        with self._lock:
            index = self._indexes.pop(file, None)
        if index is None:
            index = load()
        with self._lock:
            self._indexes[file] = index
            self._forget()
        return index

    def is_checked(self, path: Path, identity: str) -> bool:
        return self._checked.get(str(path)) == identity

    def note_checked(self, path: Path, identity: str) -> None:
        self._checked[str(path)] = identity

    def _forget(self) -> None:
        """Those that were not looked at for longest, until the others are few enough; never the last one."""
        rows = {name: 0 if each.is_mapped else len(each.codes) for name, each in self._indexes.items()}
        total = sum(rows.values())
        for name in list(rows)[:-1]:
            if total <= REMEMBERED_ROWS_MAX and len(self._indexes) <= REMEMBERED_FILES_MAX:
                return
            if total <= REMEMBERED_ROWS_MAX or rows[name]:
                del self._indexes[name]
                total -= rows[name]
        if len(self._checked) > 8 * REMEMBERED_FILES_MAX:
            self._checked.clear()


_REMEMBERED = _Remembered()


class Locator:
    """Finds keys in the files of one version. Any thread, any process."""

    def __init__(
        self,
        table: Storage,
        key: Sequence[Field],
        *,
        whole_rows: bool = False,
        exact: Field | None = None,
        saved_rows_min: int = SIZES.saved_rows_min,
    ) -> None:
        self._table = table
        self._key = tuple(key)
        self.whole_rows = whole_rows
        """The key is all columns of a table that has none."""
        self.exact = exact if whole_rows else None
        """Where files have what those columns cannot hold, if any has."""
        self._saved_rows_min = saved_rows_min

    @property
    def physical(self) -> list[str]:
        """The key's columns, as the files call them."""
        return [field.physical for field in self._key]

    def find(self, columns: Sequence[pa.Array], files: Sequence[Action], exact: pa.Array | None = None) -> Places:
        """Every live row that has a wanted key; `columns` are the keys' parts, and `exact` what these cannot hold."""
        codes = key_codes(columns, whole_rows=self.whole_rows, exact=exact)
        bounds = _Bounds(columns[0], self._key[0].type)
        found = [(np.empty(0, np.int64),) * 3]
        for number, add in enumerate(files):
            rows = bounds.within(*_limits(add, self._key[0])) if len(codes) else None
            if rows is None:
                continue
            which, positions = self._search(add, codes, rows)
            found.append((which, np.full(len(which), number), positions))
        return Places(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def _search(self, add: Action, codes: KeyCodes, rows: np.ndarray | slice) -> tuple[np.ndarray, np.ndarray]:
        index = self._index(add)
        wanted = codes if isinstance(rows, slice) else codes.take(rows)
        which, positions = index.find(wanted)
        if not isinstance(rows, slice):
            which = rows[which]
        if add.get("deletionVector") and len(positions):
            live = ~_among(positions, positions_in(read_vector(self._table, add)))
            which, positions = which[live], positions[live]
        return which, positions

    def _index(self, add: Action) -> KeyIndex:
        file = f"{self._table.address}/{name_of(self._table, add['path'])}"
        return _REMEMBERED.get((file, self._key_name()), partial(self._load, add))

    def _load(self, add: Action) -> KeyIndex:
        name = name_of(self._table, add["path"])
        if json.loads(add["stats"])["numRecords"] < self._saved_rows_min:
            return self._make_index(name)
        found = self._table.look(name)
        if found is None:
            raise damaged(name, "is gone")
        rows_file = f"{found.bytes} {found.changed_ns}"
        saved = self._table.cache / INDEX_FOLDER / f"{last_part(name)}.{self._key_name()}"
        index = self._saved(saved, rows_file)
        if index is None:
            index = self._make_index(name)
            with suppress(OSError):
                index.save(saved, rows_file)
                failpoint("delta.index")
                index = self._saved(saved, rows_file) or index
        return index

    def _saved(self, path: Path, rows_file: str) -> KeyIndex | None:
        """One that was saved. It is read to its end once, not each time that it comes back into memory."""
        identity = identity_of(path)
        if identity is None:
            return None
        index = KeyIndex.load(path, rows_file, is_checked=_REMEMBERED.is_checked(path, identity))
        if index is not None:
            _REMEMBERED.note_checked(path, identity)
        return index

    def _make_index(self, name: str) -> KeyIndex:
        if not self.whole_rows:
            return KeyIndex.of(read_columns(self._table, name, self._key))
        # All columns of a file at once would be too much.
        fields, count = [*self._key, *([self.exact] if self.exact else [])], len(self._key)
        parts = [
            key_codes(batch.columns[:count], whole_rows=True, exact=batch.columns[count] if self.exact else None)
            for batch in read_batches(self._table, name, fields, np.empty(0, np.int64))
        ]
        return KeyIndex.of_codes(KeyCodes.joined(parts))

    def _key_name(self) -> str:
        """Another key has other indexes."""
        name = "-".join(str(field.id) for field in self._key)
        return f"rows-{xxhash.xxh3_128_hexdigest(name.encode())}" if self.whole_rows else name


class _Bounds:
    """The first parts of the wanted keys, to be compared with a file's bounds."""

    def __init__(self, column: pa.Array, type_: str) -> None:
        self._is_number = type_ in ("smallint", "int", "bigint") and not column.null_count
        self._order = np.empty(0, np.int64)
        self._lowest, self._highest = None, None
        if self._is_number:
            values = column.cast(pa.int64()).to_numpy()
            self._order = np.argsort(values, kind="stable")
            self._sorted = values[self._order]
        elif type_ in ("string", "date") and not column.null_count:
            extremes = pc.min_max(column)
            self._lowest, self._highest = extremes["min"].as_py(), extremes["max"].as_py()

    def within(self, low: Any, high: Any) -> np.ndarray | slice | None:
        """Which of the wanted may lie between two bounds; None if none can."""
        if low is None or high is None:
            return slice(None)
        if self._is_number:
            begin, end = np.searchsorted(self._sorted, low, "left"), np.searchsorted(self._sorted, high, "right")
            return self._order[begin:end] if end > begin else None
        if self._lowest is None or self._highest is None:
            return slice(None)
        if isinstance(self._lowest, datetime.date):
            low, high = datetime.date.fromisoformat(low), datetime.date.fromisoformat(high)
        return None if self._highest < low or self._lowest > high else slice(None)


def _limits(add: Action, field: Field) -> tuple[Any, Any]:
    """A file's smallest and largest value of a column, or less and more than that; None where it does not say."""
    stats = json.loads(add["stats"])
    if stats.get("nullCount", {}).get(field.physical, 0):
        return None, None
    return stats.get("minValues", {}).get(field.physical), stats.get("maxValues", {}).get(field.physical)


def _among(values: np.ndarray, ordered: np.ndarray) -> np.ndarray:
    """Which of the values are in an ordered array."""
    if not len(ordered):
        return np.zeros(len(values), bool)
    places = np.minimum(ordered.searchsorted(values), len(ordered) - 1)
    found: np.ndarray = ordered[places] == values
    return found
