"""How many rows a chunk of a window has: as many as take seconds, within bounds of bytes."""

from __future__ import annotations

import pytest

from tailrace.connector.copy.window_reader import (
    CHUNK_BYTES_MIN,
    ROWS_FIRST,
    ROWS_FIRST_UNKNOWN,
    ROWS_MAX,
    WindowSizes,
    rows_first,
    rows_next,
)
from tailrace.model.table import Column, TableId, TableSchema
from tailrace.settings import TaskSizes
from tailrace.source.door.values import SourceTable

CHUNK_BYTES = TaskSizes().window_bytes
SIZES = WindowSizes(2, CHUNK_BYTES)
SCHEMA = TableSchema(TableId("public", "t"), 1, (Column("id", "int", "integer"),), ("id",))


@pytest.mark.parametrize(
    ("width", "rows"),
    [
        (None, ROWS_FIRST_UNKNOWN),
        (40, ROWS_FIRST),
        (CHUNK_BYTES // 1000, 1000),
        (2 * CHUNK_BYTES, 1),
    ],
)
def test_the_first_chunk_has_as_many_rows_as_their_width_allows(width: int | None, rows: int) -> None:
    table = SourceTable(SCHEMA, 1_000_000, row_bytes_estimated=width)
    assert rows_first(table, CHUNK_BYTES) == pytest.approx(rows, rel=0.01)


def test_a_window_that_was_quick_is_followed_by_one_that_is_four_times_as_large() -> None:
    rows = [ROWS_FIRST]
    while rows[-1] < ROWS_MAX:
        rows.append(rows_next(rows[-1], 0.01, 40, SIZES))
    assert rows[1] == 4 * ROWS_FIRST
    assert len(rows) == 4
    assert rows_next(ROWS_MAX, SIZES.seconds, 40, SIZES) == ROWS_MAX


def test_on_a_machine_that_crawls_chunks_are_still_worth_planning() -> None:
    narrow, wide, alone = ROWS_MAX, ROWS_MAX, ROWS_MAX
    for _ in range(20):
        narrow, wide = rows_next(narrow, 60, 40, SIZES), rows_next(wide, 60, CHUNK_BYTES_MIN // 200, SIZES)
        alone = rows_next(alone, 60, 1, SIZES)
    assert (narrow, wide, alone) == (CHUNK_BYTES_MIN // 40, 200, ROWS_FIRST)


def test_whatever_the_time_a_chunk_of_wide_rows_stays_within_its_bytes() -> None:
    assert rows_next(ROWS_FIRST, 0.01, CHUNK_BYTES / 500, SIZES) == 500
    assert rows_next(ROWS_FIRST, 0.01, 10 * CHUNK_BYTES, SIZES) == 1
