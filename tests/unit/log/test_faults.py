"""Single calls to the disk fail, in every way, and nothing durable is lost or confirmed in vain.

Each run takes other calls; `make proof` takes every one.
"""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from tests.unit.log.crashing_disk import CrashingDisk, fails_at
from tests.unit.log.fault_sweeps import cut_the_power_at_any_call, cut_the_power_while_deleting, fail_at_any_call
from tests.unit.log.records import IDENTITY

from tailrace.log.consumers import Consumers
from tailrace.log.write.writer import LogWriter


@pytest.mark.parametrize(("number", "operation"), [(errno.ENOSPC, ""), (errno.EIO, "sync")])
def test_a_writer_whose_disk_fails_at_any_call_continues_when_it_works_again(
    tmp_path: Path, number: int, operation: str
) -> None:
    fail_at_any_call(tmp_path, number, operation, every=8)


@pytest.mark.parametrize("lost", ["all", "none"])
def test_a_power_cut_at_any_call_keeps_what_was_confirmed(tmp_path: Path, lost: str) -> None:
    cut_the_power_at_any_call(tmp_path, lost, every=8)


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
    cut_the_power_while_deleting(tmp_path, seeds=4)
