"""Programs that have a Spark of their own: a process has one, and other tests need theirs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT


def run(program: str, folder: Path) -> list[str]:
    """The lines that it printed. Its only argument is the folder."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path, "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-c", program, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.splitlines()
