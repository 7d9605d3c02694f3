"""The log's sweeps over calls and bytes, without leaving any out."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from tests.unit.log.damage_sweeps import (
    flip_bytes_of_a_sealed_index,
    flip_bytes_of_a_segment,
    flip_bytes_of_an_index,
    write_spanning,
    write_three_segments,
)
from tests.unit.log.fault_sweeps import (
    cut_the_power_at_any_call,
    cut_the_power_while_a_segment_is_half_made,
    cut_the_power_while_deleting,
    cut_the_power_while_wiping,
    fail_at_any_call,
)
from tests.unit.log.random_undo import undo_at_random
from tests.unit.log.records import open_log

SUFFIXES = [".frames", ".transactions", ".lists", ".marks"]


@pytest.mark.parametrize(("number", "operation"), [(errno.ENOSPC, ""), (errno.EIO, "sync")])
def test_a_writer_whose_disk_fails_at_any_call_continues_when_it_works_again(
    tmp_path: Path, number: int, operation: str
) -> None:
    fail_at_any_call(tmp_path, number, operation, every=1)


@pytest.mark.parametrize("lost", ["all", "none"])
def test_a_power_cut_at_any_call_keeps_what_was_confirmed(tmp_path: Path, lost: str) -> None:
    cut_the_power_at_any_call(tmp_path, lost, every=1)


def test_a_power_cut_while_segments_are_deleted_leaves_no_hole(tmp_path: Path) -> None:
    cut_the_power_while_deleting(tmp_path, seeds=60)


def test_the_segment_that_is_written_stays_while_the_next_is_half_made(tmp_path: Path) -> None:
    cut_the_power_while_a_segment_is_half_made(tmp_path, seeds=60)


def test_a_crash_while_a_log_is_wiped_is_finished_by_the_next_writer(tmp_path: Path) -> None:
    write_three_segments(tmp_path / "log")
    cut_the_power_while_wiping(tmp_path / "log", tmp_path, every=1)


@pytest.mark.parametrize("seed", range(40))
def test_undone_changes_agree_with_a_stack(tmp_path: Path, seed: int) -> None:
    undo_at_random(open_log(tmp_path), seed)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("which", [0, 1])
def test_a_flipped_byte_in_a_sealed_index_is_an_error_that_names_the_file(
    tmp_path: Path, suffix: str, which: int
) -> None:
    write_three_segments(tmp_path)
    flip_bytes_of_a_sealed_index(tmp_path, suffix, which, every=1)


def test_every_flipped_byte_of_a_segment_is_found(tmp_path: Path) -> None:
    write_spanning(tmp_path)
    flip_bytes_of_a_segment(tmp_path, every=1)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_flipped_byte_of_the_index_is_found_and_a_rebuild_mends_it(tmp_path: Path, suffix: str) -> None:
    write_spanning(tmp_path)
    flip_bytes_of_an_index(tmp_path, suffix, every=1)
