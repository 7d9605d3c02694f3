"""Keeping the files of a table few: many small ones become one, and rows that no longer count leave.

Every publish adds a file and marks rows of others as deleted. Files of about the same size are merged when there are
eight of them, so a row is written again only a few times in its life, however many commits there are. A file that has
lost a third of its rows is written again without them.

Memory is bounded: what is merged is sorted in memory, so it is no more than `MERGED_BYTES_MAX`; neighbours in the order
of the key go first, and that order is kept. A single file is written again as it is read.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tailrace.failpoint import failpoint
from tailrace.lake.delta._draft import removal, require_written
from tailrace.lake.delta.file_names import name_of
from tailrace.lake.delta.log.commit import Origin, commit
from tailrace.lake.delta.log.contents import Contents, records
from tailrace.lake.delta.log.versions import CommitLog
from tailrace.lake.delta.metadata import Field
from tailrace.lake.delta.rows.deletion_vectors import positions_in, read_vector
from tailrace.lake.delta.rows.part import Part
from tailrace.lake.delta.rows.row_files import RowSizes, read_batches, write_rows
from tailrace.storage.door import Storage

FILES_MAX = 8
"""Of about the same size."""
SMALLEST_BYTES = 64 << 10
"""Below this, sizes count as the same."""
WHOLE_BYTES = 32 << 20
"""A file of this size is not merged with others."""
MERGED_BYTES_MAX = 64 << 20
"""Before compression. To sort and write so much takes about three times as much memory."""
MERGED_FILES_MAX = 256
GONE_MAX = 1 / 3

Action = Mapping[str, Any]


def choose(table: Storage, contents: Contents, key: Sequence[str] | None) -> list[Action]:
    """The files to be merged next; none if the table is in good order. The key's columns are named as files do; where
    none is known, the order that files have would be lost, and only worn ones are chosen."""
    worn = [add for add in contents.files.values() if _gone(add) > GONE_MAX]
    if worn:
        return [min(worn, key=lambda add: add["size"])]
    if key is None:
        return []
    tiers: dict[int, list[Action]] = {}
    for add in contents.files.values():
        if add["size"] < WHOLE_BYTES:
            tiers.setdefault(_tier(add["size"]), []).append(add)
    for _, files in sorted(tiers.items()):
        chosen = _neighbours(table, files, key) if len(files) >= FILES_MAX else []
        if len(chosen) > 1:
            return chosen
    return []


def _neighbours(table: Storage, files: Sequence[Action], key: Sequence[str]) -> list[Action]:
    """The first files in the order of the key that fit into memory together."""
    chosen: list[Action] = []
    room = MERGED_BYTES_MAX
    for add in _in_key_order(files, key)[:MERGED_FILES_MAX]:
        room -= _bytes_in_memory(table, name_of(table, add["path"]))
        if room < 0:
            break
        chosen.append(add)
    return chosen


def _in_key_order(files: Sequence[Action], key: Sequence[str]) -> list[Action]:
    """By the lowest key; as they are where a file does not say it."""
    lows: list[Any] = [json.loads(add["stats"]).get("minValues", {}).get(key[0]) if key else None for add in files]
    if any(low is None for low in lows):
        return list(files)
    return [files[number] for number in sorted(range(len(files)), key=lambda number: lows[number])]


def _bytes_in_memory(table: Storage, name: str) -> int:
    with table.open(name) as file:
        written = pq.read_metadata(file)
    return sum(written.row_group(number).total_byte_size for number in range(written.num_row_groups))


def _tier(size: int) -> int:
    return int(math.log(max(size, SMALLEST_BYTES) / SMALLEST_BYTES, FILES_MAX))


def _gone(add: Action) -> float:
    """Which part of a file's rows no longer counts."""
    vector = add.get("deletionVector")
    return int(vector["cardinality"]) / max(records(add), 1) if vector else 0.0


@dataclass(frozen=True)
class MergedFiles:
    """Writes one new file in the place of some, in the order of the key. Runs in a task."""

    table: Storage
    fields: tuple[Field, ...]
    files: tuple[Action, ...]
    key: tuple[str, ...]
    sizes: RowSizes

    def __call__(self) -> Part:
        names = [field.name for physical in self.key for field in self.fields if field.physical == physical]
        batches = self._rows()
        if len(self.files) > 1 and names:
            batches = _sorted(list(batches), names)
        added = write_rows(self.table, batches, self.fields, self.sizes)
        return Part((added,) if added else ())

    def _rows(self) -> Iterator[pa.RecordBatch]:
        for add in self.files:
            gone = positions_in(read_vector(self.table, add))
            yield from read_batches(self.table, name_of(self.table, add["path"]), self.fields, gone)


@dataclass(frozen=True)
class DeltaMerging:
    """Implements `Merging`."""

    log: CommitLog
    version: int
    origin: Origin
    rewrite: MergedFiles

    def commit(self, part: Part) -> int:
        require_written(self.log.table, [part])
        removed = [{"remove": {**removal(add), "dataChange": False}} for add in self.rewrite.files]
        added = [{"add": {**add, "dataChange": False}} for add in part.added]
        commit(self.log, self.version, [*removed, *added], self.origin)
        failpoint("delta.merge")
        return self.version


def _sorted(batches: list[pa.RecordBatch], names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    if batches:
        yield from pa.Table.from_batches(batches).sort_by([(name, "ascending") for name in names]).to_batches()
