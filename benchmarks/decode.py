"""How many 7-column inserts a core decodes in a second, by rows in a batch.

python -m benchmarks.decode
"""

from __future__ import annotations

import struct
import time
from typing import Any

import pyarrow as pa

from tailrace.model.kind import Kind
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.source.postgres._pgoutput import decode

RELATION = 16_400
LAKE_TYPES = ("bigint", "int", "decimal(12,2)", "string", "timestamp", "string", "boolean")
SCHEMA = TableSchema(
    TableId("public", "orders"), RELATION, tuple(Column(f"c{i}", lake, lake) for i, lake in enumerate(LAKE_TYPES)), ()
)
ROWS = 1_000_000


def insert(number: int) -> bytes:
    values = [
        b"%d" % number,
        b"%d" % (number % 1000),
        b"%d.%02d" % (number % 10_000, number % 100),
        b"shipped",
        b"2024-01-02 03:04:05.123456+00",
        None if number % 10 == 0 else b"some note about %d" % number,
        b"t",
    ]
    cells = (b"n" if value is None else b"t" + struct.pack(">I", len(value)) + value for value in values)
    return b"I" + struct.pack(">I", RELATION) + b"N" + struct.pack(">H", len(values)) + b"".join(cells)


def batch_of(row_count: int) -> Any:
    numbers = pa.array(range(row_count), pa.int64())
    return pa.RecordBatch.from_pydict(
        {
            **dict.fromkeys(("seq", "position", "commit_time_us"), numbers),
            **dict.fromkeys(("ordinal", "commit_ordinal", "xid"), numbers.cast(pa.uint64())),
            "kind": pa.array([Kind.INSERT] * row_count, pa.uint8()),
            "payload": pa.array([insert(number) for number in range(row_count)], pa.binary()),
        }
    )


def main() -> None:
    pa.set_cpu_count(1)
    print(f"{'rows a batch':>14} {'rows/s':>12}")
    for row_count in (1_000, 10_000, 100_000, 1_000_000):
        batch = batch_of(row_count)
        decode(batch, SCHEMA)
        started = time.perf_counter()
        for _ in range(ROWS // row_count):
            decode(batch, SCHEMA)
        print(f"{row_count:>14,} {ROWS / (time.perf_counter() - started):>12,.0f}")


if __name__ == "__main__":
    main()
