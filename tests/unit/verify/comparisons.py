"""Two tables compared as one task does it, and as several."""

from __future__ import annotations

from typing import Any

from tailrace.verify import comparing
from tailrace.verify.comparing import BothSides, Side
from tailrace.verify.dealing import compare_dealt, deal
from tailrace.verify.report import Compared

CHUNK_ROWS = 7
"""So that even small tables come in several batches."""


def compare(source: Any, lake: Any, key: tuple[str, ...], keys_max: int) -> Compared:
    """In one task."""
    both = BothSides(source.schema)
    for side, rows in ((Side.SOURCE, source), (Side.LAKE, lake)):
        for batch in rows.to_batches(max_chunksize=CHUNK_ROWS):
            both.add(batch, side)
    return comparing.compare(both, key, keys_max)


def compare_divided(source: Any, lake: Any, key: tuple[str, ...], keys_max: int, tasks: int) -> Compared:
    """Dealt out to several."""
    blobs: list[list[bytes]] = [[] for _ in range(tasks)]
    for side, rows in ((Side.LAKE, lake), (Side.SOURCE, source)):
        for task, blob in deal(rows.to_batches(max_chunksize=CHUNK_ROWS), side, key, tasks):
            blobs[task].append(blob)
    parts = [compare_dealt(dealt, BothSides(source.schema), key, keys_max) for dealt in blobs]
    return Compared.joined([part for part in parts if isinstance(part, Compared)], keys_max)
