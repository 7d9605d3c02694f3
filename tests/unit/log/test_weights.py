"""How much of the log is each table's, against a count that goes through all transactions one by one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.log.records import Record, batch, begin, change, commit, in_memory, open_log, rollback_sub

from tailrace.log.reader import LogReader

TABLES = (1, 2, 3, 70_000)

touched = st.lists(st.tuples(st.sampled_from(TABLES), st.integers(0, 300)), max_size=4)
"""What a transaction does: to which tables, with payloads of which sizes."""


def records_of(seq: int, changes: list[tuple[int, int]], *, rolls_back_a_part: bool) -> list[Record]:
    found = [begin(seq), *(change(seq, b"x" * size, table) for table, size in changes)]
    if rolls_back_a_part:
        found += [change(seq, b"lost", 2, sub_xid=9000), rollback_sub(seq, 9000)]
    return [*found, commit(seq, 100 * seq)]


def counted(reader: LogReader, starts: Mapping[int, int], upto: int) -> dict[int, float]:
    found: dict[int, float] = {}
    for row in reader.transactions(min(starts.values(), default=upto), upto).to_pylist():
        for table in set(row["relations"]) & set(starts):
            if row["seq"] > starts[table]:
                found[table] = found.get(table, 0.0) + row["bytes"] / len(row["relations"])
    return found


@given(
    st.lists(st.tuples(touched, st.booleans()), min_size=1, max_size=12),
    st.dictionaries(st.sampled_from((*TABLES, 4)), st.integers(0, 12)),
    st.integers(0, 12),
)
def test_a_tables_weight_is_its_share_of_the_transactions_that_touched_it_after_its_start(
    history: list[tuple[list[tuple[int, int]], bool]], starts: dict[int, int], upto: int
) -> None:
    with in_memory() as folder:
        writer = open_log(Path(folder))
        for seq, (changes, rolls_back) in enumerate(history, 1):
            writer.append(batch(records_of(seq, changes, rolls_back_a_part=rolls_back)))
            if seq % 5 == 0:
                writer.roll()
        writer.flush()
        reader = LogReader(Path(folder))
        upto = min(upto, reader.head.seq)
        starts = {table: min(start, upto) for table, start in starts.items()}
        expected = counted(reader, starts, upto)
        found = reader.weights(starts, upto)
    assert set(found) == set(expected), "tables that nothing touched are left out"
    assert found == {table: pytest.approx(weight, abs=1) for table, weight in expected.items()}


def test_the_weights_of_all_tables_are_those_of_their_transactions(tmp_path: Path) -> None:
    writer = open_log(tmp_path)
    for seq in range(1, 9):
        writer.append(batch(records_of(seq, [(1, 10), (2, 1000)], rolls_back_a_part=False)))
    writer.flush()
    reader = LogReader(tmp_path)
    assert sum(reader.weights({1: 0, 2: 0}, 8).values()) == reader.bytes_between(0, 8)
    assert reader.weights({1: 4, 2: 8}, 8) == {1: reader.bytes_between(4, 8) // 2}
    assert reader.weights({}, 8) == {}
