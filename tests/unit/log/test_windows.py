"""Snapshot windows are appended among the changes and belong to no transaction."""

from __future__ import annotations

from pathlib import Path

from tests.unit.log.records import batch, begin, change, commit, open_log, played, transaction

from tailrace.log.reader import LogReader
from tailrace.log.verify import rebuild_index, verify


def windows(path: Path) -> list[tuple[int, int, bytes]]:
    return [(window.position, window.ordinal, window.payload) for window in LogReader(path).windows()]


def test_a_window_is_seen_after_the_next_flush_at_the_position_that_was_promised(tmp_path: Path) -> None:
    writer = open_log(tmp_path)
    assert writer.append_window(b"before everything") == 0
    writer.append(batch(transaction(7, 100, b"a")))
    assert writer.append_window(b"between") == 4
    assert windows(tmp_path) == []
    assert writer.flush().position == 5
    assert windows(tmp_path) == [(0, 0, b"before everything"), (4, 108, b"between")]
    writer.close()
    open_log(tmp_path).close()
    rebuild_index(tmp_path)
    assert windows(tmp_path) == [(0, 0, b"before everything"), (4, 108, b"between")]
    assert verify(tmp_path).problems == []


def test_a_window_among_the_changes_of_active_transactions_changes_nothing_for_them(tmp_path: Path) -> None:
    writer = open_log(tmp_path)
    writer.append(batch([begin(7), change(7, b"a")]))
    assert writer.append_window(b"inside one") == 2
    writer.append(batch([begin(8), change(8, b"b"), change(7, b"c")]))
    assert writer.append_window(b"inside two") == 6
    writer.append(batch([commit(7, 100), commit(8, 200)]))
    writer.flush()
    assert sorted(played(tmp_path)) == [(1, b"a"), (1, b"c"), (2, b"b")]
    assert [payload for _, _, payload in windows(tmp_path)] == [b"inside one", b"inside two"]


def test_a_transaction_with_nothing_but_a_window_inside_is_not_streamed(tmp_path: Path) -> None:
    writer = open_log(tmp_path)
    writer.append(batch([begin(7), change(7, b"a")]))
    writer.append_window(b"inside")
    writer.append(batch([commit(7, 100)]))
    writer.flush()
    assert LogReader(tmp_path).transactions(0, 1)["streamed"].to_pylist() == [False]


def test_a_window_keeps_its_position_when_the_segment_is_sealed_first(tmp_path: Path) -> None:
    writer = open_log(tmp_path)
    writer.append(batch(transaction(7, 100, b"a")))
    writer.roll()
    assert writer.append_window(b"x" * 100_000) == 3
    writer.roll()
    assert windows(tmp_path) == [(3, 108, b"x" * 100_000)]
