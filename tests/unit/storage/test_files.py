"""A file that is replaced is the old one or the new one, wherever the machine stops."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.doors.damage import record_syncs
from tests.unit.log.crashing_disk import CrashingDisk, PowerCutError, fails_at

from tailrace.storage.files import replace

OLD, NEW = b"old", b"new, and longer"


def lost(_: int) -> int:
    return 0


def kept(number: int) -> int:
    return number - 1


@pytest.mark.parametrize("choose", [lost, kept])
@pytest.mark.parametrize("call", range(6))
def test_a_power_cut_at_any_call_leaves_the_old_file_or_the_new_one(
    tmp_path: Path, call: int, choose: Callable[[int], int]
) -> None:
    disk, path = CrashingDisk(), tmp_path / "file"
    replace(path, OLD, disk=disk)
    disk.fault = fails_at(call, PowerCutError())
    has_returned = True
    try:
        replace(path, NEW, disk=disk)
    except PowerCutError:
        has_returned = False
    disk.crash(choose)
    assert path.read_bytes() in ([NEW] if has_returned else [OLD, NEW])
    assert has_returned == (call == 5), "all calls are tried, and there are no more"


def test_a_draft_that_a_crash_left_is_written_again(tmp_path: Path) -> None:
    path, draft = tmp_path / "file", tmp_path / "file.new"
    draft.write_bytes(b"longer than what is written next")
    replace(path, NEW)
    assert path.read_bytes() == NEW
    assert not draft.exists()


def test_content_and_name_are_synced_and_only_the_owner_may_read_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, draft = tmp_path / "file", tmp_path / "draft"
    synced = record_syncs(monkeypatch)
    replace(path, NEW, draft)
    assert synced == [draft, tmp_path]
    assert path.stat().st_mode & 0o777 == 0o600
