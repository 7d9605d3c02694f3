"""Capture in a process of its own, on a scripted source: it obeys, answers, and comes back when it is killed."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest
from tests.doors.script import Insert, Script
from tests.doors.scripted import ScriptedSource
from tests.postgres import wait_until

from tailrace.connector.capture import CaptureOrder, CaptureProcess
from tailrace.errors import DefiniteError
from tailrace.log.reader import LogReader
from tailrace.log.writer import LogOptions
from tailrace.source.kinds import path_of

ORDERS = "shop.orders"


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    script = Script(tmp_path / "shop.jsonl")
    script.create_table(ORDERS, {"id": "bigint"}, key=["id"])
    return script


def order(script: Script, log: Path) -> CaptureOrder:
    source = ScriptedSource(str(script.path))
    claim = source.claim(None)
    source.prepare(claim, [table.table for table in source.tables([], [])], None)
    options = asdict(LogOptions())
    return CaptureOrder(path_of(source), source.arguments, claim, source.identify(), str(log), 3600.0, options)


@pytest.fixture
def capture(script: Script, tmp_path: Path) -> Iterator[CaptureProcess]:
    with CaptureProcess(order(script, tmp_path / "log")) as running:
        wait_until((tmp_path / "log" / "head").exists, 20)
        yield running


def test_a_paused_capture_stays_paused_when_it_is_killed_and_started_again(
    capture: CaptureProcess, script: Script, tmp_path: Path
) -> None:
    script.transaction([Insert(ORDERS, {"id": 1})])
    reader = LogReader(tmp_path / "log")
    wait_until(lambda: reader.refresh().seq == 1)
    capture.pause()
    wait_until(lambda: capture.is_held, 20)
    script.transaction([Insert(ORDERS, {"id": 2})])
    killed = capture.pid
    psutil.Process(killed).kill()
    wait_until(lambda: (capture.check(), capture.pid)[1] != killed)
    wait_until(lambda: capture.is_held, 20)
    assert reader.refresh().seq == 1
    capture.resume()
    wait_until(lambda: reader.refresh().seq == 2)


def test_what_capture_cannot_overcome_is_told_with_its_hint(script: Script, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a file, not a folder")
    with (
        CaptureProcess(order(script, tmp_path / "log")) as capture,
        pytest.raises(DefiniteError, match="cannot keep a log"),
    ):
        wait_until(lambda: capture.check() is not None, 20)
