"""Added records: those that do not come from the source's stream."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tailrace.log.files.record import RECORD
from tailrace.log.index.index import Mark
from tailrace.model.kind import Kind


def rollbacks(xids: list[int], ordinal: int) -> pa.RecordBatch:
    """A ROLLBACK for each of these transactions."""
    nothing = [0] * len(xids)
    return _batch([[ordinal] * len(xids), xids, nothing, [Kind.ROLLBACK] * len(xids), nothing, [b""] * len(xids)])


def schemas(marks: list[Mark], ordinal: int) -> pa.RecordBatch:
    """These schemas again, for a segment to start with."""
    return _batch(
        [
            [ordinal] * len(marks),
            [mark.xid for mark in marks],
            [0] * len(marks),
            [Kind.SCHEMA] * len(marks),
            [mark.relation for mark in marks],
            [mark.payload for mark in marks],
        ]
    )


def _batch(columns: list[list[Any]]) -> pa.RecordBatch:
    arrays = [pa.array(values, field.type) for values, field in zip(columns, RECORD, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORD)
