"""`make test` forgives nothing: a tier with a failed test fails, and says which of them was a race."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.conftest import ROOT, thorough_tests

TESTS = """
from pathlib import Path

def test_that_passes(): ...

def test_that_passes_when_it_is_run_again():
    is_again = Path("seen").exists()
    Path("seen").touch()
    assert is_again

def test_that_never_passes():
    raise AssertionError
"""


def test_a_test_that_passes_alone_is_told_as_a_race_and_fails_its_tier_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(TESTS)
    command = [sys.executable, str(ROOT / "scripts" / "tier.py"), "test_some.py"]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, *more], cwd=tmp_path, capture_output=True, text=True, check=False)

    done = run()
    assert done.returncode == 1, done
    lines = (tmp_path / "build" / "races.txt").read_text().splitlines()
    told = ["fault test_some.py::test_that_never_passes", "race  test_some.py::test_that_passes_when_it_is_run_again"]
    assert [line.split(" ", 2)[2] for line in lines] == told
    assert "test_some.py --randomly-seed=" in done.stdout
    (tmp_path / "seen").unlink()
    assert run("-k", "again").returncode == 1, "a race alone fails the tier too"
    assert run("-k", "that_passes").returncode == 0


def test_each_test_that_is_left_to_make_thorough_is_there() -> None:
    listed = thorough_tests()
    assert listed, "the list is read"
    for name in listed:
        path, _, test = name.partition("::")
        assert f"def {test.partition('[')[0]}(" in (ROOT / path).read_text(encoding="utf-8"), name
