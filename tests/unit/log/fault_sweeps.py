"""A log is written while the disk fails, or the power is cut, at one call after the other."""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.unit.log.crashing_disk import CrashingDisk, PowerCutError, fails_at
from tests.unit.log.damage_sweeps import ALL
from tests.unit.log.records import IDENTITY, batch, begin, change, commit, open_log, played, sample, schema, transaction

from tailrace.log.consumers import Consumers
from tailrace.log.files.layout import load_manifest
from tailrace.log.reader import LogReader
from tailrace.log.write.writer import LogBlockedError, LogOptions, LogWriter

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


def fail_at_any_call(folder: Path, number: int, operation: str, every: int) -> None:
    """The writer continues when the disk works again. `operation` is in the names of the calls that fail."""
    calls = [call for call, name in enumerate(count_calls(folder / "count")) if operation in name]
    assert len(calls) > 10
    for call in sample(calls, every):
        path = folder / str(call)
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


def cut_the_power_at_any_call(folder: Path, lost: str, every: int) -> None:
    """What was confirmed stays. Of what was not synced, `lost` is "all" or "none"."""
    calls = len(count_calls(folder / "count"))
    for call in sample(range(calls), every):
        path = folder / str(call)
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


def cut_the_power_while_deleting(folder: Path, seeds: int) -> None:
    """Retention leaves no hole."""
    for seed in range(seeds):
        path = folder / str(seed)
        disk = CrashingDisk()
        writer = LogWriter.open(path, IDENTITY, disk=disk)
        for number in range(1, 6):
            writer.append(batch(transaction(number, number * 100, b"%d" % number)))
            writer.roll()
        Consumers(path, disk).acknowledge("lake", 3 + seed % 3)
        chance = random.Random(seed)
        disk.fault = fails_at(chance.randrange(18), PowerCutError())
        with suppress(PowerCutError):
            writer.retain()
        disk.fault = lambda operation: None
        writer.close()
        disk.crash(chance.randrange)
        writer = LogWriter.open(path, IDENTITY, disk=disk)
        assert writer.head.seq == 5
        assert played(path, after=3 + seed % 3) == [(seq, b"%d" % seq) for seq in range(4 + seed % 3, 6)]
        writer.close()


def cut_the_power_while_a_segment_is_half_made(folder: Path, seeds: int) -> None:
    """The segment before it stays."""
    for seed in range(seeds):
        path = folder / str(seed)
        disk = CrashingDisk()
        writer = LogWriter.open(path, IDENTITY, disk=disk)
        writer.append(batch(transaction(1, 100, b"a")))
        writer.flush()
        Consumers(path, disk).acknowledge("lake", 1)
        disk.fault = fails_whenever("sync directory", OSError(errno.EIO, "io"))
        with pytest.raises(LogBlockedError):
            writer.roll()
        writer.append(batch(transaction(2, 200, b"b")))
        disk.fault = fails_whenever("sync directory", PowerCutError())
        with suppress(PowerCutError):
            writer.retain()
        disk.fault = lambda operation: None
        writer.close()
        disk.crash(random.Random(seed).randrange)
        writer = LogWriter.open(path, IDENTITY, disk=disk)
        assert writer.head.seq == 1
        writer.close()


def fails_whenever(refused: str, error: BaseException) -> Callable[[str], None]:
    def fault(operation: str) -> None:
        if operation == refused:
            raise error

    return fault


def cut_the_power_while_wiping(path: Path, folder: Path, every: int) -> None:
    """The next writer of a log of `write_three_segments` finishes it.

    The old id never comes with other records, and none of the old records come with the new id.
    """
    old = load_manifest(path).id
    states = set()
    for call in range(0, 40, every):
        copy = folder / str(call)
        shutil.copytree(path, copy)
        disk = CrashingDisk()
        disk.fault = fails_at(call, PowerCutError())
        try:
            LogWriter.open(copy, IDENTITY, LogOptions(reuse=False), disk).close()
        except PowerCutError:
            writer = open_log(copy)
            fresh = load_manifest(copy).id != old
            assert writer.head.seq == (0 if fresh else 6)
            assert played(copy) == ([] if fresh else ALL)
            states.add(fresh)
            writer.close()
    assert states == {True, False}
