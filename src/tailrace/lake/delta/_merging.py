"""Keeping the files of a table few: many small ones become one, and rows that no longer count leave.

Every publish adds a file and marks rows of others as deleted. Files of about the same size are merged when there are
eight of them, so a row is written again only a few times in its life, however many commits there are. A file that has
lost a third of its rows is written again without them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from tailrace.lake.delta._contents import Contents, records
from tailrace.lake.delta._draft import removal
from tailrace.lake.delta._rows import read_batches, write_rows
from tailrace.lake.delta._vectors import located, positions_in, read_vector

FILES_MAX = 8
"""Of about the same size."""
SMALLEST_BYTES = 64 << 10
"""Below this, sizes count as the same."""
WHOLE_BYTES = 96 << 20
"""A file of this size is not merged with others."""
GONE_MAX = 1 / 3

Action = Mapping[str, Any]


def choose(contents: Contents) -> list[Action]:
    """The files to be merged next; none if the table is in good order."""
    worn = [add for add in contents.files.values() if _gone(add) > GONE_MAX]
    if worn:
        return [min(worn, key=lambda add: add["size"])]
    tiers: dict[int, list[Action]] = {}
    for add in contents.files.values():
        if add["size"] < WHOLE_BYTES:
            tiers.setdefault(_tier(add["size"]), []).append(add)
    full = [tier for tier, files in tiers.items() if len(files) >= FILES_MAX]
    return tiers[min(full)] if full else []


def _tier(size: int) -> int:
    return int(math.log(max(size, SMALLEST_BYTES) / SMALLEST_BYTES, FILES_MAX))


def _gone(add: Action) -> float:
    """Which part of a file's rows no longer counts."""
    vector = add.get("deletionVector")
    return int(vector["cardinality"]) / max(records(add), 1) if vector else 0.0


def merged(table: Path, contents: Contents, files: Sequence[Action], key: Sequence[str]) -> list[Action]:
    """The actions that put one new file in the place of these, in the order of the key. No row changes."""
    fields = contents.metadata.fields
    batches: list[pa.RecordBatch] = []
    for add in files:
        gone = positions_in(read_vector(table, add))
        batches += read_batches(located(table, add["path"]), fields, gone)
    rows = pa.Table.from_batches(batches) if batches else None
    if rows is not None and key:
        rows = rows.sort_by([(name, "ascending") for name in key])
    actions: list[Action] = [{"remove": {**removal(add), "dataChange": False}} for add in files]
    added = write_rows(table, rows.to_batches(), fields) if rows is not None else None
    return [*actions, {"add": {**added, "dataChange": False}}] if added else actions
