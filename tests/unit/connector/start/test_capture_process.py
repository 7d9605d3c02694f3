"""Capture in a process of its own, on a scripted source: it obeys, answers, and comes back when it is killed, whatever
becomes of the process that it was forked from."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import psutil
import pytest
from tests.doors.script import Insert, Script
from tests.doors.scripted import ScriptedSource
from tests.postgres import wait_until

from tailrace.connector.start.capture_process import CaptureOrder, CaptureProcess, Captures
from tailrace.errors import DefiniteError, ResyncError
from tailrace.log.reader import LogReader
from tailrace.log.write.writer import LogOptions
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


def test_a_capture_that_was_killed_is_a_trouble_until_it_continues(
    capture: CaptureProcess, script: Script, tmp_path: Path
) -> None:
    script.transaction([Insert(ORDERS, {"id": 1})])
    wait_until(lambda: capture.is_proven, 20)
    psutil.Process(capture.pid).kill()
    wait_until(lambda: (capture.check(), capture.report)[1] is not None, 20)
    assert capture.report is not None
    assert capture.report.message.startswith("capture died (exit code -9) and is started again")
    wait_until(lambda: capture.report is None, 20)


def test_what_capture_cannot_overcome_is_told_with_its_hint(script: Script, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("a file, not a folder")
    with (
        CaptureProcess(order(script, tmp_path / "log")) as capture,
        pytest.raises(DefiniteError, match="cannot keep a log"),
    ):
        wait_until(lambda: capture.check() is not None, 20)


class FailingSource:
    """Its capture fails because of one table."""

    def capture(self, *_: object) -> None:
        raise ResyncError.of(ORDERS, "it broke")


def test_what_capture_died_of_is_raised_as_it_was_with_its_table(script: Script, tmp_path: Path) -> None:
    failing = replace(order(script, tmp_path / "log"), source=f"{__name__}:FailingSource", arguments={})
    with CaptureProcess(failing) as capture, pytest.raises(ResyncError, match=r"shop\.orders: it broke") as raised:
        wait_until(lambda: capture.check() is not None, 20)
    assert (raised.value.table, raised.value.hint) == (ORDERS, ResyncError.of(ORDERS, "").hint)


def test_a_process_that_captures_never_loads_what_only_others_need() -> None:
    """Arrow would load pandas by itself."""
    program = (
        "import sys, numpy, pyarrow, tailrace.connector.start.capture_process as capture;"
        "from tailrace.source.postgres.source import PostgresSource; capture.use_little_memory();"
        "pyarrow.array(numpy.arange(3)); pyarrow.array([b'a']).take(pyarrow.array([0]));"
        "print(*{'pandas', 'pyspark', 'duckdb', 'pyarrow.dataset', 'pyarrow.parquet'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []


def test_captures_are_forked_from_one_process(script: Script, tmp_path: Path) -> None:
    with (
        CaptureProcess(order(script, tmp_path / "log")) as one,
        CaptureProcess(order(script, tmp_path / "other")) as other,
    ):
        for log in ("log", "other"):
            wait_until((tmp_path / log / "head").exists, 20)
        processes = [psutil.Process(each.pid) for each in (one, other)]
        assert [each.name() for each in processes] == ["capture", "capture"]
        assert processes[0].ppid() == processes[1].ppid() != os.getpid()
    assert not any(map(psutil.pid_exists, (one.pid, other.pid)))


def test_a_capture_has_the_environment_of_the_moment_in_which_it_is_started(
    script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the process that it is forked from is older."""
    Captures().prepare(ScriptedSource(str(script.path)))
    monkeypatch.setenv("TAILRACE_FAILPOINT", "capture.flushed")
    with CaptureProcess(order(script, tmp_path / "log")) as capture:
        wait_until(lambda: capture.exit_code is not None, 20)
        assert capture.exit_code == -signal.SIGKILL
        monkeypatch.delenv("TAILRACE_FAILPOINT")
        script.transaction([Insert(ORDERS, {"id": 1})])
        capture.check()
        reader = LogReader(tmp_path / "log")
        wait_until(lambda: reader.refresh().seq == 1)


def test_captures_outlive_a_kill_of_the_process_that_they_were_forked_from(
    capture: CaptureProcess, script: Script, tmp_path: Path
) -> None:
    """They are ended and started again from another one."""
    before, forked_from = capture.pid, psutil.Process(capture.pid).parent()
    assert forked_from is not None
    forked_from.kill()
    script.transaction([Insert(ORDERS, {"id": 1})])
    wait_until(lambda: (capture.check(), capture.pid)[1] != before, 20)
    reader = LogReader(tmp_path / "log")
    script.transaction([Insert(ORDERS, {"id": 2})])
    wait_until(lambda: reader.refresh().seq == 2, 20)
    wait_until(lambda: not psutil.pid_exists(before), 20)


def test_a_capture_that_cannot_be_loaded_says_so(script: Script, tmp_path: Path, capfd: pytest.CaptureFixture) -> None:
    unknown = replace(order(script, tmp_path / "log"), source="nowhere:Nothing")
    with CaptureProcess(unknown) as capture, pytest.raises(DefiniteError, match="died 5 times"):
        wait_until(lambda: capture.check() is not None, 20)
    assert "No module named 'nowhere'" in capfd.readouterr().err


CONNECTOR = """
import sys
from tests.unit.connector.start.test_capture_process import CaptureProcess, Path, Script, order
with CaptureProcess(order(Script(Path(sys.argv[1])), Path(sys.argv[2]))) as capture:
    print(capture.pid, flush=True)
    sys.stdin.read()
"""


def test_nothing_is_left_of_a_connector_that_is_killed(script: Script, tmp_path: Path) -> None:
    command = [sys.executable, "-c", CONNECTOR, str(script.path), str(tmp_path / "log")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as connector:
        assert connector.stdout is not None
        connector.stdout.readline()
        left = psutil.Process(connector.pid).children(recursive=True)
        assert len(left) == 2
        connector.kill()
    assert psutil.wait_procs(left, 20)[1] == []
