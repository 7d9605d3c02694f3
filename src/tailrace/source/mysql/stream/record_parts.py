"""Records of the log, collected while events are read: few objects for many rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tailrace.log.files.record import RECORD
from tailrace.model.kind import Kind
from tailrace.source.mysql.events.row_events import CutRows


class RecordParts:
    """Records in order. For one thread."""

    def __init__(self) -> None:
        self._counts: list[int] = []
        self._fixed: list[tuple[int, int, int, int]] = []
        """Of each part: ordinal, transaction, kind, relation."""
        self._payloads: list[bytes] = []
        self._lengths: list[Any] = []
        self.bytes = 0
        """Of their payloads."""

    def __bool__(self) -> bool:
        return bool(self._counts)

    def add(self, ordinal: int, xid: int, kind: Kind, payload: bytes = b"", relation: int = 0) -> None:
        """One record."""
        self._add((ordinal, xid, kind, relation), payload, [len(payload)])

    def add_rows(self, ordinal: int, xid: int, kind: Kind, rows: CutRows, relation: int) -> None:
        """A record for each row of an event."""
        lengths = np.diff(rows.ends, prepend=0)
        self._add((ordinal, xid, kind, relation), rows.data.tobytes(), lengths)

    def _add(self, fixed: tuple[int, int, int, int], payload: bytes, lengths: Any) -> None:
        self._counts.append(len(lengths))
        self._fixed.append(fixed)
        self._payloads.append(payload)
        self._lengths.append(lengths)
        self.bytes += len(payload)

    def take(self) -> pa.RecordBatch:
        """All of them; none are left."""
        fixed = np.array(self._fixed, np.uint64).reshape(-1, 4)
        ordinal, xid, kind, relation = np.repeat(fixed, self._counts, axis=0).T
        lengths = np.concatenate([*self._lengths, np.zeros(0, np.int64)])
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
        data = b"".join(self._payloads)
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
        payload = pa.BinaryArray.from_buffers(pa.binary(), len(lengths), buffers)
        columns = [ordinal, xid, np.zeros(len(lengths)), kind, relation]
        types = [field.type.to_pandas_dtype() for field in RECORD][:-1]
        arrays = [pa.array(column.astype(type_)) for column, type_ in zip(columns, types, strict=True)]
        self.__init__()  # type: ignore[misc]
        return pa.RecordBatch.from_arrays([*arrays, payload], schema=RECORD)
