"""How much memory the embedded Spark may take."""

from __future__ import annotations

import pytest

from tailrace.engine.spark.options import heap_gb


@pytest.mark.parametrize(("memory_gb", "heap"), [(1, 2), (8, 2), (16, 4), (24, 6), (256, 8)])
def test_the_heap_is_a_quarter_of_the_memory_within_bounds(memory_gb: int, heap: int) -> None:
    assert heap_gb(memory_gb << 30) == heap
