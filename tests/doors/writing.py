"""Versions of a lake table, written in one part here or in several as executors do."""

from __future__ import annotations

import pickle

import pyarrow as pa

from tailrace.lake.door import Draft, LakeTable, Part
from tailrace.lake.stamp import Stamp
from tailrace.model.table import TableSchema


def copy(table: LakeTable, rows: pa.Table, schema: TableSchema, stamp: Stamp, parts: int = 1) -> int:
    return finish(table.copy(schema, stamp), rows, parts)


def publish(
    table: LakeTable,
    states: pa.Table,
    schema: TableSchema,
    stamp: Stamp,
    *,
    replaces_all: bool = False,
    parts: int = 1,
) -> int:
    return finish(table.publish(schema, stamp), states, parts, replaces_all=replaces_all)


def finish(draft: Draft, rows: pa.Table, parts: int = 1, *, replaces_all: bool = False) -> int:
    found = written(draft, rows, parts, replaces_all=replaces_all)
    if not replaces_all:
        found += [rewrite() for rewrite in draft.rest(found)]
    return draft.commit(found, replaces_all=replaces_all)


def written(draft: Draft, rows: pa.Table, parts: int = 1, *, replaces_all: bool = False) -> list[Part]:
    """Several parts are written by copies of the writer, which travelled as they do to executors."""
    writer = draft.write_alone if replaces_all else draft.write
    if parts == 1:
        return [writer(rows.to_batches())]
    found = []
    for number in range(parts):
        share = rows.take(pa.array(range(number, rows.num_rows, parts), pa.int64()))
        part = pickle.loads(pickle.dumps(writer))(share.to_batches())
        found.append(pickle.loads(pickle.dumps(part)))
    return found


def maintained(table: LakeTable) -> int | None:
    """One step of a table's upkeep, in this process; the version that it made, if it made one."""
    merging = table.maintain()
    return merging.commit(merging.rewrite()) if merging is not None else None
