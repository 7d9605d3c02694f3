"""The demo, as `make demo` runs it, only shorter."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def _demo(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "demo", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.timeout(900)
def test_the_demo_ends_with_all_tables_equal(tmp_path: Path) -> None:
    shown = _demo("--folder", str(tmp_path / "demo"), "--seconds", "3", "--no-stay")
    assert shown.returncode == 0, shown.stdout + shown.stderr
    assert "tailrace verify" in shown.stdout
    assert len(re.findall(r"  equal *$", shown.stdout, re.MULTILINE)) == 4, "a verdict for each table"
    assert "every table is equal, compared at" in shown.stdout
    assert "shop loaded" in shown.stdout


def test_the_help_of_the_demo_says_how_it_starts_afresh() -> None:
    shown = _demo("--help")
    assert shown.returncode == 0
    assert "--clean" in shown.stdout
