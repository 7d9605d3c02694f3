"""Consumers, pins and retention; quota and a full disk; the transient mode."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.unit.log.crashing_disk import CrashingDisk, fails_at
from tests.unit.log.records import (
    IDENTITY,
    UnsyncedDisk,
    batch,
    begin,
    change,
    commit,
    keepalive,
    open_log,
    played,
    transaction,
)

from tailrace.errors import DefiniteError
from tailrace.log.consumers import Consumers
from tailrace.log.files.layout import segment_positions
from tailrace.log.reader import LogReader
from tailrace.log.write.retention import disk_bytes
from tailrace.log.write.writer import LogBlockedError, LogOptions, LogWriter

DAY_US = 86_400_000_000


@pytest.fixture
def writer(tmp_path: Path) -> LogWriter:
    """A log of five segments with one transaction in each; the sixth is empty."""
    writer = open_log(tmp_path)
    for number in range(1, 6):
        writer.append(batch(transaction(number, number * 100, b"%d" % number)))
        writer.roll()
    return writer


def test_nothing_is_deleted_before_a_consumer_has_registered(writer: LogWriter) -> None:
    assert writer.retain() == []


def test_segments_go_when_every_consumer_is_past_them(writer: LogWriter) -> None:
    reader = LogReader(writer.path)
    reader.acknowledge("lake", 4)
    reader.acknowledge("history", 2)
    assert len(writer.retain()) == 2
    assert reader.oldest_seq == 3
    assert played(writer.path, after=2) == [(3, b"3"), (4, b"4"), (5, b"5")]
    with pytest.raises(DefiniteError, match="holds only 3 of the transactions 1 to 5"):
        reader.transactions(0, 5)


def test_an_acknowledgement_never_goes_back(writer: LogWriter) -> None:
    consumers = Consumers(writer.path)
    consumers.acknowledge("lake/1 ü", 4)
    consumers.acknowledge("lake/1 ü", 2)
    assert consumers.acknowledged() == {"lake/1 ü": 4}
    consumers.forget("lake/1 ü")
    assert consumers.acknowledged() == {}


def test_a_pin_holds_what_is_behind_it(writer: LogWriter) -> None:
    consumers = Consumers(writer.path)
    consumers.acknowledge("lake", 5)
    consumers.pin("read", 3)
    assert len(writer.retain()) == 3
    consumers.unpin("read")
    assert len(writer.retain()) == 2


def test_an_active_transaction_holds_the_segment_in_which_it_began(writer: LogWriter) -> None:
    writer.append(batch([begin(7), change(7, b"a")]))
    writer.roll()
    writer.roll()
    Consumers(writer.path).acknowledge("lake", 5)
    assert len(writer.retain()) == 5
    writer.append(batch([commit(7, 700)]))
    assert writer.retain() == [], "it has committed, but nobody can read that yet"
    writer.flush()
    assert writer.retain() == [], "nobody has read it yet"
    assert played(writer.path, after=5) == [(6, b"a")]
    Consumers(writer.path).acknowledge("lake", 6)
    assert len(writer.retain()) == 1


def test_a_finished_transaction_that_the_index_lacks_holds_its_segment(tmp_path: Path) -> None:
    disk = CrashingDisk()
    writer = LogWriter.open(tmp_path, IDENTITY, disk=disk)
    writer.append(batch([begin(7), change(7, b"a")]))
    writer.roll()
    Consumers(tmp_path).acknowledge("lake", 0)
    writer.append(batch([commit(7, 700)]))
    operations: list[str] = []
    disk.fault = _fails_after_the_sync(operations)
    with pytest.raises(LogBlockedError):
        writer.flush()
    disk.fault = lambda operation: None
    assert writer.retain() == []
    writer.flush()
    assert played(tmp_path) == [(1, b"a")]


def _fails_after_the_sync(operations: list[str]):  # type: ignore[no-untyped-def]
    def fault(operation: str) -> None:
        operations.append(operation)
        if "sync" in operations[:-1]:
            raise OSError(28, "No space left on device")

    return fault


def test_young_segments_are_kept_for_a_while(tmp_path: Path) -> None:
    now = 1_000_000_000
    writer = open_log(tmp_path, clock=lambda: now)
    for number in range(1, 4):
        writer.append(batch(transaction(number, number * 100, b"a")))
        writer.roll()
        now += 60_000_000
    Consumers(tmp_path).acknowledge("lake", 3)
    assert len(writer.retain(keep_seconds=150)) == 1
    assert len(writer.retain()) == 2


def test_segments_roll_by_size_and_by_age(tmp_path: Path) -> None:
    now = 0
    writer = open_log(tmp_path, LogOptions(segment_bytes_max=5000, segment_seconds_max=60), clock=lambda: now)
    writer.append(batch(transaction(1, 100, b"a")))
    writer.flush()
    assert segment_positions(tmp_path) == [0]
    writer.append(batch(transaction(2, 200, b"a" * 5000)))
    writer.flush()
    assert segment_positions(tmp_path) == [0, 6]
    now = 61_000_000
    assert writer.flush().position == 6
    assert segment_positions(tmp_path) == [0, 6], "an empty segment is not sealed"
    writer.append(batch(transaction(3, 300, b"a")))
    writer.flush()
    assert segment_positions(tmp_path) == [0, 6, 9]


def test_at_the_quota_the_writer_says_who_holds_the_log_and_continues_when_it_is_freed(tmp_path: Path) -> None:
    writer = open_log(tmp_path, LogOptions(quota_bytes=30_000))
    Consumers(tmp_path).acknowledge("lake", 0)
    with pytest.raises(LogBlockedError, match='quota of 30000 bytes: "lake" has read up to transaction 0'):
        _fill(writer)
    seq = writer.head.seq + 1
    assert disk_bytes(tmp_path) <= 30_000
    assert writer.blocked is not None
    Consumers(tmp_path).acknowledge("lake", seq - 1)
    assert writer.flush().seq == seq
    assert writer.blocked is None
    assert played(tmp_path, after=seq - 1) == [(seq, b"x" * 2000)]


def _fill(writer: LogWriter) -> None:
    for seq in range(1, 100):
        writer.append(batch(transaction(seq, seq * 100, b"x" * 2000)))
        writer.flush()


def test_a_blocked_writer_refuses_more_than_its_buffer_holds(tmp_path: Path) -> None:
    disk = CrashingDisk()
    writer = LogWriter.open(tmp_path, IDENTITY, LogOptions(buffer_bytes_max=5000), disk)
    writer.append(batch([begin(7)]))
    disk.fault = fails_at(0)
    with pytest.raises(LogBlockedError, match="No space left on device"):
        writer.flush()
    for _ in range(5):
        writer.append(batch([change(7, b"x" * 1000)]))
    with pytest.raises(LogBlockedError):
        writer.append(batch([change(7, b"x" * 1000)]))
    assert writer.flush().position == 6


def test_transient_mode_begins_again_every_time(writer: LogWriter) -> None:
    reader = LogReader(writer.path)
    Consumers(writer.path).acknowledge("lake", 5)
    writer.close()
    again = open_log(writer.path, LogOptions(reuse=False))
    assert (again.head.seq, again.last_commit.ordinal, again.active) == (0, 0, {})
    assert Consumers(writer.path).acknowledged() == {}
    again.append(batch(transaction(1, 50, b"again")))
    again.flush()
    assert played(writer.path) == [(1, b"again")]
    with pytest.raises(DefiniteError, match="begun again"):
        reader.refresh()


def test_a_flush_larger_than_the_quota_is_taken_by_an_empty_log(tmp_path: Path) -> None:
    writer = open_log(tmp_path, LogOptions(quota_bytes=5000))
    writer.append(batch(transaction(1, 100, b"x" * 6000)))
    assert writer.flush().seq == 1
    writer.append(batch(transaction(2, 200, b"y")))
    with pytest.raises(LogBlockedError, match="no consumer has registered"):
        writer.flush()


def test_a_flush_that_would_wait_for_no_consumer_is_taken(tmp_path: Path) -> None:
    writer = open_log(tmp_path, LogOptions(quota_bytes=50_000))
    writer.append(batch(transaction(1, 100, b"x")))
    writer.flush()
    Consumers(tmp_path).acknowledge("lake", 1)
    writer.append(batch(transaction(2, 200, b"y" * 49_000)))
    assert writer.flush().seq == 2
    writer.append(batch(transaction(3, 300, b"z")))
    with pytest.raises(LogBlockedError, match='"lake" has read up to transaction 1'):
        writer.flush()
    Consumers(tmp_path).acknowledge("lake", 2)
    assert writer.flush().seq == 3
    assert disk_bytes(tmp_path) < 50_000


def test_a_clock_that_was_set_back_keeps_nothing_longer(tmp_path: Path) -> None:
    now_us = 10 * DAY_US
    writer = open_log(tmp_path, clock=lambda: now_us)
    for seq in (1, 2):
        writer.append(batch(transaction(seq, seq * 100, b"x")))
        writer.roll()
    now_us = 9 * DAY_US
    Consumers(tmp_path).acknowledge("lake", 2)
    assert len(writer.retain()) == 2
    writer.append(batch(transaction(3, 300, b"x")))
    writer.flush()
    assert len(segment_positions(tmp_path)) == 2


def test_an_idle_log_is_sealed_by_age_too(tmp_path: Path) -> None:
    now_us = 0
    writer = open_log(tmp_path, LogOptions(segment_seconds_max=60), clock=lambda: now_us)
    writer.append(batch(transaction(1, 100, b"x")))
    writer.flush()
    Consumers(tmp_path).acknowledge("lake", 1)
    now_us = 61_000_000
    assert len(writer.retain()) == 1


def test_nothing_is_deleted_while_a_consumer_is_about_to_say_what_it_needs(writer: LogWriter) -> None:
    """And the writer does not wait for it: it may never be done."""
    Consumers(writer.path).acknowledge("lake", 5)
    with Consumers(writer.path).unchanged():
        assert writer.retain() == []
    assert len(writer.retain()) == 5


def test_the_quota_holds_while_a_consumer_is_about_to_say_what_it_needs(tmp_path: Path) -> None:
    writer = open_log(tmp_path, LogOptions(quota_bytes=30_000))
    for seq in range(1, 8):
        writer.append(batch(transaction(seq, seq * 100, b"x" * 2000)))
        writer.flush()
    writer.append(batch(transaction(8, 800, b"y" * 8000)))
    Consumers(tmp_path).acknowledge("lake", 7)
    with Consumers(tmp_path).unchanged(), pytest.raises(LogBlockedError, match="it cannot be freed just now"):
        writer.flush()
    assert disk_bytes(tmp_path) <= 30_000
    assert writer.flush().seq == 8
    assert disk_bytes(tmp_path) <= 30_000


def test_a_pin_for_what_is_gone_is_refused_also_by_a_reader_that_does_not_know_it_yet(writer: LogWriter) -> None:
    reader = LogReader(writer.path)
    assert reader.oldest_seq == 1
    Consumers(writer.path).acknowledge("lake", 3)
    writer.retain()
    with pytest.raises(DefiniteError, match="no longer holds all of transaction 1 "):
        reader.pin("read", 0)
    reader.pin("read", 3)
    assert Consumers(writer.path).pins() == {"read": 3}


def test_the_head_is_seen_after_its_own_transaction_was_deleted(tmp_path: Path) -> None:
    writer = open_log(tmp_path)
    writer.append(batch(transaction(1, 100, b"x")))
    writer.roll()
    Consumers(tmp_path).acknowledge("lake", 1)
    reader = LogReader(tmp_path)
    assert len(writer.retain()) == 1
    writer.append(batch([keepalive(5000), begin(7)]))
    assert reader.refresh() != writer.flush()
    assert reader.refresh() == LogReader(tmp_path).head == writer.head


def test_consumers_may_have_any_name_that_fits_a_file(tmp_path: Path) -> None:
    open_log(tmp_path).close()
    consumers = Consumers(tmp_path)
    for name in ("a/b", "..", "ü\n", "[/red]"):
        consumers.acknowledge(name, 1)
    assert consumers.acknowledged().keys() == {"a/b", "..", "ü\n", "[/red]"}
    for name, seq in (("", 1), ("x" * 300, 1), ("lake", -1)):
        with pytest.raises(ValueError, match=r"cannot be a consumer's name|not a sequence number"):
            consumers.acknowledge(name, seq)
    with pytest.raises(ValueError, match="transaction 1 comes after the head"):
        LogReader(tmp_path).acknowledge("lake", 1)


def test_a_damaged_consumer_file_stops_deletion_until_its_owner_acknowledges(writer: LogWriter) -> None:
    file = writer.path / "consumers" / "lake.json"
    Consumers(writer.path).acknowledge("lake", 0)
    file.write_bytes(b"")
    with pytest.raises(DefiniteError, match=r"lake\.json is damaged"):
        writer.retain()
    Consumers(writer.path).acknowledge("lake", 1)
    writer.retain()


def test_acknowledgements_from_many_threads_never_go_back(tmp_path: Path) -> None:
    open_log(tmp_path).close()
    consumers = Consumers(tmp_path, UnsyncedDisk())
    with ThreadPoolExecutor(4) as pool:
        for _ in pool.map(lambda seq: consumers.acknowledge("lake", seq), [*range(200), *range(200)]):
            pass
    assert consumers.acknowledged() == {"lake": 199}
