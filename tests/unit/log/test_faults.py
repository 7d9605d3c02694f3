"""Every single call to the disk fails once, in every way, and nothing durable is lost or confirmed in vain."""

from __future__ import annotations

import contextlib
import errno
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.log.crashing_disk import CrashingDisk, PowerCutError, fails_at
from tests.unit.log.records import IDENTITY, batch, begin, change, commit, played, schema, transaction

from tailrace.log.consumers import Consumers
from tailrace.log.reader import LogReader
from tailrace.log.writer import LogBlockedError, LogOptions, LogWriter

OPTIONS = LogOptions(segment_bytes_max=3000)
EXPECTED = {1: b"1" * 900, 2: b"2" * 900, 3: b"long"}


def steps(writer: LogWriter, flush: Callable[[], None]) -> None:
    """A run with flushes, rolls, an unfinished transaction over all of it, and retention."""
    writer.append(batch([schema(1, "id"), begin(99), change(99, b"long")]))
    for number in range(1, 3):
        writer.append(batch(transaction(number, number * 100, EXPECTED[number])))
        flush()
    writer.append(batch([commit(99, 900)]))
    flush()


def count_calls(path: Path) -> list[str]:
    calls: list[str] = []
    disk = CrashingDisk()
    disk.fault = calls.append
    writer = LogWriter.open(path, IDENTITY, OPTIONS, disk)
    steps(writer, lambda: ignore(writer.flush()))
    writer.close()
    return calls


def ignore(_: object) -> None:
    pass


@pytest.mark.parametrize(("number", "operation"), [(errno.ENOSPC, ""), (errno.EIO, "sync")])
def test_a_writer_whose_disk_fails_at_any_call_goes_on_when_it_works_again(
    tmp_path: Path, number: int, operation: str
) -> None:
    calls = [call for call, name in enumerate(count_calls(tmp_path / "count")) if operation in name]
    assert len(calls) > 10
    for call in calls:
        path = tmp_path / str(call)
        disk = CrashingDisk()
        disk.fault = fails_at(call, OSError(number, os.strerror(number)))
        try:
            writer = LogWriter.open(path, IDENTITY, OPTIONS, disk)
        except (LogBlockedError, OSError):
            writer = LogWriter.open(path, IDENTITY, OPTIONS, disk)
        steps(writer, lambda writer=writer: flush_until_it_works(writer))  # type: ignore[misc]
        assert dict(played(path)) == EXPECTED
        assert LogReader(path).head == writer.head
        writer.close()
        reopened = LogWriter.open(path, IDENTITY, OPTIONS, disk)
        assert reopened.head.seq == 3
        assert dict(played(path)) == EXPECTED
        reopened.close()


def flush_until_it_works(writer: LogWriter) -> None:
    durable = writer.head.seq
    try:
        writer.flush()
    except LogBlockedError:
        is_reported = writer.blocked is not None and writer.head.seq >= durable
        seen = dict(played(writer.path))
        writer.flush()
        assert is_reported
        assert seen == {seq: EXPECTED[seq] for seq in range(1, len(seen) + 1)}
    assert writer.blocked is None


@pytest.mark.parametrize("lost", ["all", "none"])
def test_a_power_cut_at_any_call_keeps_what_was_confirmed(tmp_path: Path, lost: str) -> None:
    calls = len(count_calls(tmp_path / "count"))
    for call in range(0, calls, 1 if lost == "all" else 3):
        path = tmp_path / str(call)
        disk = CrashingDisk()
        confirmed = run_until_the_power_cut(path, disk, call)
        disk.crash(lambda n: 0 if lost == "all" else n - 1)
        writer = LogWriter.open(path, IDENTITY, OPTIONS, disk)
        assert writer.head.seq >= confirmed
        assert dict(played(path)) == {seq: EXPECTED[seq] for seq in range(1, writer.head.seq + 1)}
        writer.close()


def run_until_the_power_cut(path: Path, disk: CrashingDisk, call: int) -> int:
    """The newest sequence number that a flush had confirmed before."""
    confirmed = 0
    disk.fault = fails_at(call, PowerCutError())
    writer = None

    def flush() -> None:
        nonlocal confirmed
        assert writer is not None
        confirmed = writer.flush().seq

    try:
        writer = LogWriter.open(path, IDENTITY, OPTIONS, disk)
        steps(writer, flush)
    except PowerCutError:
        pass
    disk.fault = lambda operation: None
    if writer is not None:
        writer.close()
    return confirmed


def test_an_acknowledgement_that_fails_leaves_the_one_before(tmp_path: Path) -> None:
    disk = CrashingDisk()
    LogWriter.open(tmp_path, IDENTITY, disk=disk).close()
    consumers = Consumers(tmp_path, disk)
    consumers.acknowledge("lake", 1)
    for call in range(3):
        disk.fault = fails_at(call)
        with pytest.raises(OSError, match="No space"):
            consumers.acknowledge("lake", 2)
        assert consumers.acknowledged() == {"lake": 1}


def test_a_power_cut_while_segments_are_deleted_leaves_no_hole(tmp_path: Path) -> None:
    for seed in range(12):
        path = tmp_path / str(seed)
        disk = CrashingDisk()
        writer = LogWriter.open(path, IDENTITY, disk=disk)
        for number in range(1, 6):
            writer.append(batch(transaction(number, number * 100, b"%d" % number)))
            writer.roll()
        Consumers(path, disk).acknowledge("lake", 3 + seed % 3)
        chance = random.Random(seed)
        disk.fault = fails_at(chance.randrange(18), PowerCutError())
        with contextlib.suppress(PowerCutError):
            writer.retain()
        disk.fault = lambda operation: None
        writer.close()
        disk.crash(chance.randrange)
        writer = LogWriter.open(path, IDENTITY, disk=disk)
        assert writer.head.seq == 5
        assert played(path, after=3 + seed % 3) == [(seq, b"%d" % seq) for seq in range(4 + seed % 3, 6)]
        writer.close()
