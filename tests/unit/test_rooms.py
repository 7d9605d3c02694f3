"""No room needs a particular database or a particular table format: without its folder, the rest is whole."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src"

IMPORT_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module("tailrace")
assert package.__file__.startswith(sys.argv[1]), package.__file__
for module in pkgutil.walk_packages(package.__path__, "tailrace."):
    importlib.import_module(module.name)
print(*sys.modules)
"""


@pytest.mark.parametrize(
    ("folder", "packages", "other"),
    [("source/postgres", ("psycopg",), "lake/delta"), ("lake/delta", ("delta",), "source/postgres")],
)
def test_every_other_module_can_be_imported_without_a_particular_database_or_format(
    tmp_path: Path, folder: str, packages: tuple[str, ...], other: str
) -> None:
    shutil.copytree(SOURCE / "tailrace", tmp_path / "tailrace", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.rmtree(tmp_path / "tailrace" / folder)
    command = [sys.executable, "-B", "-c", IMPORT_ALL, str(tmp_path)]
    ended = subprocess.run(command, env={"PYTHONPATH": str(tmp_path)}, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    imported = set(ended.stdout.split())
    assert imported.isdisjoint(packages)
    assert f"tailrace.{other.replace('/', '.')}" in imported
    rooms = {f"tailrace.{path.name}" for path in (SOURCE / "tailrace").iterdir() if (path / "__init__.py").exists()}
    assert rooms <= imported
