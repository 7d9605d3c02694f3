"""What survives a crash: every durable flush, and nothing of the others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.unit.log.records import batch, begin, change, commit, open_log, played, schema, transaction

from tailrace.errors import DefiniteError
from tailrace.log.files.layout import segment_path
from tailrace.log.reader import LogReader
from tailrace.log.write.writer import LogWriter


def reopened(path: Path) -> LogWriter:
    return open_log(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A log with two durable flushes."""
    writer = open_log(tmp_path)
    for xid in (7, 8):
        writer.append(batch(transaction(xid, xid * 100, b"payload %d" % xid)))
        writer.flush()
    writer.close()
    return tmp_path


def test_a_torn_tail_is_cut_to_the_last_whole_batch(path: Path) -> None:
    segment = segment_path(path, 0)
    whole = segment.read_bytes()
    writer = reopened(path)
    writer.append(batch(transaction(9, 900, b"torn")))
    writer.flush()
    writer.close()
    torn = segment.read_bytes()
    for size in (len(whole) + 1, len(whole) + 100, len(torn) - 1):
        segment.write_bytes(torn[:size])
        os.unlink(path / "head")
        writer = reopened(path)
        assert (writer.head.seq, writer.last_commit.ordinal) == (2, 800)
        assert segment.read_bytes() == whole
        writer.close()


def test_readers_never_truncate(path: Path) -> None:
    segment = segment_path(path, 0)
    segment.write_bytes(segment.read_bytes() + b"torn")
    before = segment.read_bytes()
    assert played(path) == [(1, b"payload 7"), (2, b"payload 8")]
    assert segment.read_bytes() == before


def test_damage_in_the_middle_names_the_file_and_the_byte(path: Path) -> None:
    segment = segment_path(path, 0)
    content = bytearray(segment.read_bytes())
    at = content.index(b"payload 7")
    content[at] ^= 1
    segment.write_bytes(content)
    with pytest.raises(DefiniteError, match=rf"{segment} is damaged at byte \d+"):
        reopened(path)
    with pytest.raises(DefiniteError, match=rf"{segment} is damaged at byte \d+"):
        played(path)


def test_a_durable_flush_that_is_gone_is_an_error_and_not_an_end(path: Path) -> None:
    segment = segment_path(path, 0)
    segment.write_bytes(segment.read_bytes()[:-8])
    with pytest.raises(DefiniteError, match="ends at position 3, but was durable up to 6"):
        reopened(path)


@pytest.mark.parametrize("size", [0, 5, 100])
def test_a_segment_without_a_whole_header_is_damage_and_stays(path: Path, size: int) -> None:
    """Segments get their name when they are durable, so none that is torn was left by a crash."""
    segment_path(path, 6).write_bytes(segment_path(path, 0).read_bytes()[:size])
    with pytest.raises(DefiniteError, match="is damaged at byte 0: its header cannot be read"):
        reopened(path)
    assert segment_path(path, 6).exists()


@pytest.mark.parametrize("suffix", [".frames", ".transactions", ".lists", ".marks"])
def test_a_lost_index_is_completed_from_the_segment(path: Path, suffix: str) -> None:
    writer = reopened(path)
    writer.append(batch([schema(3, "id"), *transaction(9, 900, b"c", relation=3)]))
    writer.flush()
    writer.close()
    index = path / f"{0:020d}{suffix}"
    before = index.read_bytes()
    for size in {0, len(before) // 2, max(0, len(before) - 1)}:
        index.write_bytes(before[:size])
        reopened(path).close()
        assert index.read_bytes() == before


def test_a_transaction_open_at_the_crash_continues_after_it(path: Path) -> None:
    writer = reopened(path)
    writer.append(batch([begin(9), change(9, b"before")]))
    writer.flush()
    writer.roll()
    writer.close()
    writer = reopened(path)
    assert writer.active == {9: 6}
    writer.append(batch([change(9, b"after"), commit(9, 900)]))
    writer.flush()
    assert played(path, after=2) == [(3, b"before"), (3, b"after")]


def test_abandoned_transactions_stay_forgotten_after_a_restart(path: Path) -> None:
    writer = reopened(path)
    writer.append(batch([begin(9), change(9, b"sent once")]))
    writer.flush()
    writer.abandon_active()
    writer.flush()
    writer.close()
    writer = reopened(path)
    assert writer.active == {}
    writer.append(batch(transaction(9, 900, b"sent again")))
    writer.flush()
    assert played(path, after=2) == [(3, b"sent again")]


def test_what_was_not_flushed_is_gone(path: Path) -> None:
    writer = reopened(path)
    writer.append(batch(transaction(9, 900, b"never flushed")))
    writer.close()
    assert LogReader(path).head.seq == 2
    assert reopened(path).head.seq == 2
