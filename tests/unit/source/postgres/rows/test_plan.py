"""How a table is cut into chunks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.table import TableId
from tailrace.source.postgres.catalog.tables import CatalogPart, CatalogTable
from tailrace.source.postgres.rows.chunks import plan

TABLE = TableId("public", "t")


def table(blocks: int, size_bytes: int, server_version: int = 160000) -> CatalogTable:
    part = CatalogPart(TABLE, 1, None, "d", frozenset({"id"}), blocks, size_bytes, rows_estimated=0)
    return CatalogTable(TABLE, 1, "d", frozenset({"id"}), frozenset({"id"}), (), (part,), False, server_version)


@given(st.integers(0, 10**6), st.integers(0, 10**10), st.integers(1 << 20, 1 << 30))
def test_chunks_follow_each_other_without_gap_and_the_last_has_no_end(
    blocks: int, toast_bytes: int, bytes_max: int
) -> None:
    size_bytes = blocks * 8192 + toast_bytes
    chunks = plan(table(blocks, size_bytes), bytes_max)
    assert chunks[0].first_block == 0
    assert [chunk.end_block for chunk in chunks] == [chunk.first_block for chunk in chunks[1:]] + [None]
    assert all(chunk.end_block > chunk.first_block for chunk in chunks[:-1] if chunk.end_block is not None)
    assert len(chunks) <= max(1, -(-size_bytes // bytes_max))


@given(st.integers(1, 10**6), st.integers(1 << 20, 1 << 30))
def test_a_chunk_is_not_larger_than_asked_where_blocks_allow_it(blocks: int, bytes_max: int) -> None:
    chunks = plan(table(blocks, blocks * 8192), bytes_max)
    steps = [chunk.end_block - chunk.first_block for chunk in chunks[:-1] if chunk.end_block is not None]
    assert all((step - 1) * 8192 <= bytes_max for step in steps)


def test_before_postgres_14_a_table_is_one_chunk() -> None:
    assert len(plan(table(10_000, 10_000 * 8192, server_version=130000), 1 << 20)) == 1
