"""One process at a time has the lock, and it says who."""

from __future__ import annotations

import os
import threading
from contextlib import closing
from pathlib import Path

import pytest

from tailrace.storage.folder_lock import FolderLock, HeldError, note_of_holder


def test_a_second_one_is_refused_with_the_note_of_the_first(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    file.write_text("an older and longer note")
    with closing(FolderLock(file, "mine")):
        assert note_of_holder(file) == b"mine"
        with pytest.raises(HeldError) as refused:
            FolderLock(file, "theirs")
        assert refused.value.note == b"mine"
    with closing(FolderLock(file)):
        assert note_of_holder(file) == b""


def test_no_one_holds_a_lock_that_was_given_back_or_never_taken(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    assert note_of_holder(file) is None
    FolderLock(file, "mine").close()
    assert note_of_holder(file) is None


def test_a_lock_that_is_refused_leaves_no_file_open(tmp_path: Path) -> None:
    with closing(FolderLock(tmp_path / "lock")):
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            with pytest.raises(HeldError):
                FolderLock(tmp_path / "lock")
        assert len(os.listdir("/proc/self/fd")) == before


def test_a_child_that_was_forked_meanwhile_does_not_keep_a_lock_that_was_given_back(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path / "lock")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(write)
        os.read(read, 1)
        os._exit(0)
    lock.close()
    assert note_of_holder(tmp_path / "lock") is None
    os.close(write)
    os.close(read)
    os.waitpid(child, 0)


def test_those_who_only_look_keep_no_one_from_taking_it(tmp_path: Path) -> None:
    file, is_over = tmp_path / "lock", threading.Event()
    file.touch()

    def look() -> None:
        while not is_over.is_set():
            note_of_holder(file)

    lookers = [threading.Thread(target=look) for _ in range(3)]
    for each in lookers:
        each.start()
    try:
        for _ in range(300):
            FolderLock(file).close()
    finally:
        is_over.set()
        for each in lookers:
            each.join()


def test_the_kernel_frees_the_lock_of_a_process_that_dies(tmp_path: Path) -> None:
    file = tmp_path / "lock"
    child = os.fork()
    if child == 0:
        FolderLock(file, "dead")
        os._exit(0)
    os.waitpid(child, 0)
    FolderLock(file).close()
