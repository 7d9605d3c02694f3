"""A writer that was refused something continues when it can, and leaves no trace of what it was refused."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.unit.log.crashing_disk import CrashingDisk
from tests.unit.log.fault_sweeps import cut_the_power_while_a_segment_is_half_made, fails_whenever
from tests.unit.log.records import (
    IDENTITY,
    UnsyncedDisk,
    batch,
    begin,
    change,
    commit,
    open_log,
    played,
    schema,
    transaction,
)

from tailrace.log import reader as reader_module
from tailrace.log import schema_versions
from tailrace.log.consumers import Consumers
from tailrace.log.reader import LogReader
from tailrace.log.write.retention import disk_bytes
from tailrace.log.write.writer import LogBlockedError, LogOptions, LogWriter

QUOTA = LogOptions(quota_bytes=200_000)


class RefusingDisk(UnsyncedDisk):
    """Has no room for files whose name `refused` accepts."""

    def __init__(self) -> None:
        self.refused: Callable[[str], bool] = lambda name: False
        self.truncates = True

    def _check(self, name: str) -> None:
        if self.refused(name):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def open(self, path: Path) -> int:
        self._check(path.name)
        return super().open(path)

    def write(self, descriptor: int, parts: object, offset: int) -> None:
        self._check(Path(f"/proc/self/fd/{descriptor}").readlink().name)
        super().write(descriptor, parts, offset)  # type: ignore[arg-type]

    def replace(self, source: Path, target: Path) -> None:
        self._check(target.name)
        super().replace(source, target)

    def truncate(self, descriptor: int, size: int) -> None:
        if not self.truncates:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().truncate(descriptor, size)


@pytest.mark.parametrize("name", [".transactions", "head"])
def test_what_readers_could_not_see_is_shown_before_the_quota_is_looked_at(tmp_path: Path, name: str) -> None:
    """Nobody could acknowledge it otherwise, and nothing would ever be freed."""
    disk = RefusingDisk()
    writer = LogWriter.open(tmp_path, IDENTITY, QUOTA, disk)
    Consumers(tmp_path).acknowledge("lake", 0)
    writer.append(batch(transaction(1, 100, b"x" * 120_000)))
    disk.refused = lambda file: file.endswith(name)
    with pytest.raises(LogBlockedError, match="No space left"):
        writer.flush()
    disk.refused = lambda file: False
    writer.append(batch(transaction(2, 200, b"y" * 120_000)))
    with pytest.raises(LogBlockedError, match="quota"):
        writer.flush()
    Consumers(tmp_path).acknowledge("lake", LogReader(tmp_path).head.seq)
    assert writer.flush().seq == 2


def test_the_end_of_a_transaction_that_fills_the_quota_is_taken(tmp_path: Path) -> None:
    writer = open_log(tmp_path, QUOTA)
    Consumers(tmp_path).acknowledge("lake", 0)
    writer.append(batch([begin(1), change(1, b"x" * 150_000)]))
    writer.flush()
    writer.append(batch([change(1, b"y" * 60_000)]))
    with pytest.raises(LogBlockedError, match="a transaction has been active since position 0"):
        writer.flush()
    writer.append(batch([commit(1, 100)]))
    assert writer.flush().seq == 1
    assert played(tmp_path) == [(1, b"x" * 150_000), (1, b"y" * 60_000)]


def test_forgetting_the_transaction_that_fills_the_quota_frees_it(tmp_path: Path) -> None:
    writer = open_log(tmp_path, QUOTA)
    Consumers(tmp_path).acknowledge("lake", 0)
    writer.append(batch([begin(1)]))
    with suppress(LogBlockedError):
        for _ in range(1000):
            writer.append(batch([change(1, b"x" * 2000)]))
            writer.flush()
    writer.close()
    writer = open_log(tmp_path, QUOTA)
    writer.abandon_active()
    writer.append(batch(transaction(2, 200, b"y")))
    assert writer.flush().seq == 1
    Consumers(tmp_path).acknowledge("lake", 1)
    writer.roll()
    writer.retain()
    assert disk_bytes(tmp_path) < 10_000


def test_the_quota_holds_also_where_a_pin_has_a_consumers_name(tmp_path: Path) -> None:
    writer = open_log(tmp_path, QUOTA)
    Consumers(tmp_path).acknowledge("lake", 0)
    Consumers(tmp_path).pin("lake", 1 << 40)
    for seq in range(1, 7):
        writer.append(batch(transaction(seq, seq * 100, b"x" * 30_000)))
        writer.flush()
    writer.append(batch(transaction(7, 700, b"x" * 30_000)))
    with pytest.raises(LogBlockedError, match='"lake" has read up to transaction 0'):
        writer.flush()


def test_a_roll_or_a_start_that_is_refused_again_and_again_leaves_no_file_open(tmp_path: Path) -> None:
    def open_files() -> int:
        return len(os.listdir("/proc/self/fd"))

    disk = RefusingDisk()
    writer = LogWriter.open(tmp_path, IDENTITY, disk=disk)
    writer.append(batch(transaction(1, 100, b"x")))
    writer.flush()
    before = open_files()
    for refused in (".frames", ".marks", ".arrows.tmp", ".arrows"):
        disk.refused = lambda name, refused=refused: name.endswith(refused)  # type: ignore[misc]
        for _ in range(5):
            with pytest.raises(LogBlockedError):
                writer.roll()
    assert open_files() == before
    disk.refused = lambda name: False
    writer.roll()
    writer.close()
    before = open_files()
    for refused in ("lock", ".frames.tmp", ".marks.tmp", "head"):
        disk.refused = lambda name, refused=refused: name.endswith(refused)  # type: ignore[misc]
        with suppress(LogBlockedError):
            LogWriter.open(tmp_path, IDENTITY, disk=disk).close()
    assert open_files() == before
    assert played(tmp_path) == [(1, b"x")]


@pytest.mark.parametrize("how", ["roll", "close"])
def test_a_refused_batch_that_could_not_be_cut_off_at_once_is_cut_off_later(tmp_path: Path, how: str) -> None:
    disk = RefusingDisk()
    writer = LogWriter.open(tmp_path, IDENTITY, disk=disk)
    writer.append(batch(transaction(1, 100, b"a")))
    writer.flush()
    disk.truncates = False
    with pytest.raises(ValueError, match="has not begun"):
        writer.append(batch([*transaction(2, 200, b"b" * 300_000), change(77, b"orphan")]))
    disk.truncates = True
    if how == "roll":
        writer.roll()
        writer.append(batch(transaction(2, 200, b"good")))
        writer.flush()
    writer.close()
    open_log(tmp_path).close()
    assert played(tmp_path) == ([(1, b"a"), (2, b"good")] if how == "roll" else [(1, b"a")])


def test_the_segment_that_is_written_stays_while_the_next_is_half_made(tmp_path: Path) -> None:
    cut_the_power_while_a_segment_is_half_made(tmp_path, seeds=4)


def test_deletion_that_the_disk_refuses_is_tried_again(tmp_path: Path) -> None:
    disk = CrashingDisk()
    writer = LogWriter.open(tmp_path, IDENTITY, disk=disk)
    for seq in (1, 2):
        writer.append(batch(transaction(seq, seq * 100, b"a")))
        writer.roll()
    Consumers(tmp_path).acknowledge("lake", 2)
    disk.fault = fails_whenever("unlink", OSError(errno.EIO, "io"))
    assert writer.retain() == []
    disk.fault = lambda operation: None
    assert len(writer.retain()) == 2


def test_a_transaction_that_retention_cuts_while_it_is_planned_is_not_played_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = open_log(tmp_path)
    writer.append(batch([begin(1), change(1, b"first")]))
    writer.roll()
    writer.append(batch([begin(2), change(1, b"second"), commit(1, 100)]))
    writer.roll()
    writer.append(batch([change(2, b"x"), commit(2, 200)]))
    writer.flush()
    reader, plan = LogReader(tmp_path), reader_module.plan

    def late_plan(*arguments: object) -> object:
        Consumers(tmp_path).acknowledge("lake", 1)
        writer.retain()
        return plan(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(reader_module, "plan", late_plan)
    with pytest.raises(Exception, match="no longer holds all of transaction 1 "):
        reader.ranges(0, 2, 1 << 20)


def test_schemas_are_read_beside_retention_and_after_a_roll_that_was_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = RefusingDisk()
    writer = LogWriter.open(tmp_path, IDENTITY, disk=disk)
    writer.append(batch([schema(1, "a"), *transaction(1, 100, b"a")]))
    writer.flush()
    disk.refused = lambda name: name.endswith(".arrows")
    with pytest.raises(LogBlockedError):
        writer.roll()
    reader = LogReader(tmp_path)
    assert len(reader.schemas()) == 1
    writer.close()
    writer = open_log(tmp_path)
    writer.append(batch([schema(1, "a", "b"), *transaction(2, 200, b"b")]))
    writer.roll()
    reader.refresh()
    assert reader.schemas() == LogReader(tmp_path).schemas()
    assert len(reader.schemas()) == 2
    positions = schema_versions.segment_positions
    Consumers(tmp_path).acknowledge("lake", 2)
    monkeypatch.setattr(schema_versions, "segment_positions", lambda path: [positions(path), writer.retain()][0])
    assert [version.schema.names for version in LogReader(tmp_path).schemas()] == [("a", "b")]


def test_a_full_disk_is_freed_of_what_consumers_have_acknowledged(tmp_path: Path) -> None:
    disk = RefusingDisk()
    writer = LogWriter.open(tmp_path, IDENTITY, disk=disk)
    for seq in (1, 2, 3):
        writer.append(batch(transaction(seq, seq * 100, b"a")))
        writer.roll()
    Consumers(tmp_path).acknowledge("lake", 2)
    disk.refused = lambda name: True
    writer.append(batch(transaction(4, 400, b"b")))
    with pytest.raises(LogBlockedError, match="No space left"):
        writer.flush()
    assert len(writer.retain()) == 2
    disk.refused = lambda name: False
    assert writer.flush().seq == 4
    assert played(tmp_path, after=2) == [(3, b"a"), (4, b"b")]
