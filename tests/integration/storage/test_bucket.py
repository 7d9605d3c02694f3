"""A bucket of a real server keeps the promises of the door."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from tests.doors import storage_promises as promises
from tests.s3 import S3Server

from tailrace.storage.bucket import Bucket


@pytest.fixture
def bucket(s3: S3Server, tmp_path: Path) -> Bucket:
    """A folder of a new one."""
    return s3.bucket(f"{s3.make_bucket(uuid.uuid4().hex)}/lake", tmp_path / "cache").at("shop/orders")


def test_a_file_is_put_as_a_whole(bucket: Bucket) -> None:
    promises.assert_puts_whole_files(bucket)


def test_one_of_many_writers_puts_a_new_file(bucket: Bucket) -> None:
    promises.assert_puts_new_files_once(bucket)


def test_a_file_that_is_written_piece_by_piece_is_there_when_it_is_whole(bucket: Bucket) -> None:
    promises.assert_creates_files_piece_by_piece(bucket)


def test_parts_of_a_file_are_read(bucket: Bucket) -> None:
    promises.assert_gets_parts(bucket)


def test_a_folder_is_listed_in_order(bucket: Bucket) -> None:
    promises.assert_lists(bucket)


def test_files_are_deleted_with_the_folders_that_they_leave_empty(bucket: Bucket) -> None:
    promises.assert_deletes(bucket)


def test_a_bucket_has_no_marks(bucket: Bucket) -> None:
    promises.assert_marks_folders(bucket)


def test_files_are_set_aside_in_a_local_folder(bucket: Bucket, tmp_path: Path) -> None:
    promises.assert_sets_aside(bucket, tmp_path / "damaged" / "orders")


def test_a_journal_keeps_its_lines_in_order(bucket: Bucket) -> None:
    promises.assert_keeps_journals(bucket)
