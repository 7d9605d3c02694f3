"""How many inserts of seven narrow columns a core decodes in a second, next to a decoder that goes row by row.

python -m benchmarks.decode [--quick]

Ours makes typed Arrow columns, by rows in a batch. pypgoutput makes an object a row, with the columns' texts. Values of
these are then made with Python's own types, as its user would do it. The aim is about the latter, because values are
what ours makes. All are measured in processor time, in turn; medians count.
"""

from __future__ import annotations

import argparse
import importlib.util
import statistics
import struct
import sys
import time
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from benchmarks.aims import Aim, report
from benchmarks.figures import show

from tailrace.model.kind import Kind
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.source.postgres.values.row_changes import decode

RELATION = 16_400
LAKE_TYPES = ("bigint", "int", "decimal(12,2)", "string", "timestamp", "string", "boolean")
SCHEMA = TableSchema(
    TableId("public", "orders"), RELATION, tuple(Column(f"c{i}", lake, lake) for i, lake in enumerate(LAKE_TYPES)), ()
)
ROWS = 1_000_000
ROUNDS = 5
BATCHES = (1_000, 10_000, 100_000)
USUAL_BATCH = 100_000
"""About what is decoded at once of a backlog."""
RIVAL = "pypgoutput"
TEXTS, VALUES = f"{RIVAL}, texts", f"{RIVAL}, values"
ROWS_PER_SECOND = 700_000
TIMES_THE_RIVAL = 30


PYTHON_TYPES: tuple[Callable[[str], Any], ...] = (int, int, Decimal, str, datetime.fromisoformat, str, "t".__eq__)


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


def rival() -> Callable[[bytes], Any]:
    """pypgoutput's decoder of an insert. Its other modules need a driver that has to be compiled."""
    package = importlib.util.find_spec(RIVAL)
    if package is None or package.origin is None:
        raise SystemExit(f"{RIVAL} is missing\n  hint: make bench-decode installs it")
    spec = importlib.util.spec_from_file_location("rival_decoders", Path(package.origin).with_name("decoders.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.Insert  # type: ignore[no-any-return]


def ours(batch: Any, repeats: int) -> float:
    """Rows a second."""
    begun = time.process_time()
    for _ in range(repeats):
        decode(batch, SCHEMA)
    return float(repeats * batch.num_rows / (time.process_time() - begun))


def theirs(decoder: Callable[[bytes], Any], payloads: list[bytes]) -> float:
    begun = time.process_time()
    for payload in payloads:
        decoder(payload)
    return len(payloads) / (time.process_time() - begun)


def with_values(decoder: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """A row's values, None for null."""

    def decode_row(payload: bytes) -> list[Any]:
        columns = zip(PYTHON_TYPES, decoder(payload).new_tuple.column_data, strict=True)
        return [None if column.col_data is None else made(column.col_data) for made, column in columns]

    return decode_row


def require_same(decoder: Callable[[bytes], Any], batch: Any) -> None:
    """Both must have read the same texts, or one of them does less."""
    row = decode(batch.slice(7, 1), SCHEMA).to_pylist()[0]
    texts = [column.col_data for column in decoder(insert(7)).new_tuple.column_data]
    assert [str(row["c0"]), str(row["c1"]), str(row["c2"]), row["c3"]] == texts[:4]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decode")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, one round")
    quick = parser.parse_args().quick
    rows, rounds = (ROWS // 10, 1) if quick else (ROWS, ROUNDS)
    pa.set_cpu_count(1)
    decoder = rival()
    batches = {count: batch_of(count) for count in BATCHES}
    require_same(decoder, batches[BATCHES[0]])
    payloads = batches[USUAL_BATCH]["payload"].to_pylist()[: rows // 20]
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        for count, batch in batches.items():
            found.setdefault(f"tailrace, {count:,} rows a batch", []).append(ours(batch, rows // count))
        found.setdefault(TEXTS, []).append(theirs(decoder, payloads))
        found.setdefault(VALUES, []).append(theirs(with_values(decoder), payloads))
    speeds = {name: statistics.median(each) for name, each in found.items()}
    show(
        "decoding inserts of seven columns on one core",
        ("", "rows a second", f"to {VALUES}"),
        [(name, f"{speed:,.0f}", f"{speed / speeds[VALUES]:.1f}") for name, speed in speeds.items()],
    )
    usual = speeds[f"tailrace, {USUAL_BATCH:,} rows a batch"]
    return report(
        [
            Aim("decoded_rows_per_second_and_core", usual, ROWS_PER_SECOND),
            Aim("decoded_to_pypgoutput_values", usual / speeds[VALUES], TIMES_THE_RIVAL),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
