"""Every storage keeps the promises of the door, and a folder of this machine some of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.doors import storage_promises as promises
from tests.doors.damage import record_syncs
from tests.doors.memory_bucket import MemoryBucket

from tailrace.storage.door import Storage
from tailrace.storage.local import LocalFolder


@pytest.fixture(params=["folder", "bucket"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Storage:
    """One that is part of a larger one."""
    lake: Storage = MemoryBucket(str(tmp_path), tmp_path / "cache")
    if request.param == "folder":
        (tmp_path / "lake").mkdir()
        lake = LocalFolder(tmp_path / "lake")
    return lake.at("shop/orders")


def test_a_file_is_put_as_a_whole(storage: Storage) -> None:
    promises.assert_puts_whole_files(storage)


def test_one_of_many_writers_puts_a_new_file(storage: Storage) -> None:
    promises.assert_puts_new_files_once(storage)


def test_a_file_that_is_written_piece_by_piece_is_there_when_it_is_whole(storage: Storage) -> None:
    promises.assert_creates_files_piece_by_piece(storage)


def test_parts_of_a_file_are_read(storage: Storage) -> None:
    promises.assert_gets_parts(storage)


def test_a_folder_is_listed_in_order(storage: Storage) -> None:
    promises.assert_lists(storage)


def test_files_are_deleted_with_the_folders_that_they_leave_empty(storage: Storage) -> None:
    promises.assert_deletes(storage)


def test_a_mark_tells_that_a_file_came_or_went(storage: Storage) -> None:
    promises.assert_marks_folders(storage)


def test_files_are_set_aside_in_a_local_folder(storage: Storage, tmp_path: Path) -> None:
    promises.assert_sets_aside(storage, tmp_path / "damaged" / "orders")


def test_a_journal_keeps_its_lines_in_order(storage: Storage) -> None:
    storage.put("own/there", b"")
    promises.assert_keeps_journals(storage)


def test_what_is_put_into_a_folder_is_synced_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = LocalFolder(tmp_path).at("t")
    folder.put("log/0", b"makes the folder")
    synced = record_syncs(monkeypatch)
    folder.put("log/1", b"")
    assert folder.put_new("log/2", b"")
    assert not folder.put_new("log/2", b"")
    kinds = ["folder" if path == tmp_path / "t" / "log" else path.suffix for path in synced]
    assert kinds == [".tmp", "folder", ".tmp", "folder", ".tmp"]


def test_a_folder_is_synced_after_its_files_and_up_to_the_lake_when_it_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = LocalFolder(tmp_path).at("shop/t")
    with folder.create("log/1") as file:
        file.write(b"content")
    synced = record_syncs(monkeypatch)
    folder.sync(["log/1"])
    own = tmp_path / "shop" / "t"
    assert (synced[0], {*synced[1:]}) == (own / "log" / "1", {own / "log", own})
    synced.clear()
    folder.sync([], is_new=True)
    assert {*synced} == {own, own.parent, tmp_path}


def test_a_file_in_a_folder_can_be_read_by_whom_the_umask_lets(tmp_path: Path) -> None:
    folder, was = LocalFolder(tmp_path), os.umask(0o027)
    try:
        folder.put("put", b"")
        folder.put_new("put new", b"")
        with folder.create("created"):
            pass
    finally:
        os.umask(was)
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o640}


def test_a_name_in_a_folder_may_be_a_whole_path(tmp_path: Path) -> None:
    """Other writers' commits can have them."""
    (tmp_path / "elsewhere").write_bytes(b"rows")
    folder = LocalFolder(tmp_path / "lake").at("t")
    assert folder.get(str(tmp_path / "elsewhere")) == b"rows"
