"""An interrupted process leaves nothing that it has made, at whatever moment the signal comes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

MAKE = """
import os, signal, subprocess, threading
from tailrace import ending

def interrupt():
    os.kill(os.getpid(), signal.SIGINT)

def start():
    if {when!r} == "before":
        interrupt()
    process = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    if {when!r} == "between":
        interrupt()
    print(process.pid, flush=True)
    return process

ending.watch()
ending.on_interrupt("interrupted: {when}")
folder = ending.temporary_folder("ending-")
(folder / "file").touch()
if {apart}:
    thread = threading.Thread(target=ending.started, args=[start])
    thread.start()
    thread.join()
else:
    ending.started(start)
if {when!r} == "after":
    interrupt()
    threading.Event().wait(60)
"""


@pytest.mark.parametrize("apart", [False, True], ids=["main thread", "another thread"])
@pytest.mark.parametrize("when", ["before", "between", "after", "never"])
def test_what_a_process_makes_ends_with_it(when: str, *, apart: bool, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MAKE.format(when=when, apart=apart)],
        env={"TMPDIR": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if when == "never":
        assert (done.returncode, done.stderr) == (0, "")
    else:
        assert (done.returncode, done.stderr) == (130, f"interrupted: {when}\n")
    assert not psutil.pid_exists(int(done.stdout))
    assert list(tmp_path.iterdir()) == []


SPEAK = """
import atexit, subprocess, sys, threading
from tailrace import ending

def speak():
    process.wait()
    print("met a process that is gone", file=sys.stderr, flush=True)
    spoken.set()

spoken = threading.Event()
ending.watch()
process = ending.started(lambda: subprocess.Popen(["sleep", "1000"], start_new_session=True))
threading.Thread(target=speak, daemon=True).start()
atexit.unregister(ending._at_exit)
atexit.register(spoken.wait, 20)
atexit.register(ending._at_exit)
print("done")
"""


def test_a_thread_that_outlives_a_command_says_nothing_when_its_process_is_killed() -> None:
    done = subprocess.run([sys.executable, "-c", SPEAK], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
