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
    return finish(table.publish(schema, stamp, replaces_all=replaces_all), states, parts)


def finish(draft: Draft, rows: pa.Table, parts: int = 1) -> int:
    return draft.commit(written(draft, rows, parts))


def written(draft: Draft, rows: pa.Table, parts: int = 1) -> list[Part]:
    """Several parts are written by copies of the writer, which travelled as they do to executors."""
    if parts == 1:
        return [draft.write(rows.to_batches())]
    found = []
    for number in range(parts):
        share = rows.take(pa.array(range(number, rows.num_rows, parts), pa.int64()))
        part = pickle.loads(pickle.dumps(draft.write))(share.to_batches())
        found.append(pickle.loads(pickle.dumps(part)))
    return found
