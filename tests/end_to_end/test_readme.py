"""The README's transcript is run, and what comes out has the shape of what it shows."""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from demo import shop
from demo.embedded import EmbeddedPostgres

README = Path(__file__).resolve().parents[2] / "README.md"
README_DSN = "postgresql://postgres@127.0.0.1:5432/shop"


def _transcript() -> list[tuple[str, str]]:
    """The commands of all `console` blocks in order, each with the output shown under it."""
    steps: list[tuple[str, str]] = []
    for block in re.findall(r"^```console\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
        steps += zip(parts[1::2], parts[2::2], strict=True)
    return steps


def _shape(text: str) -> list[str]:
    """Lines without what differs from run to run: numbers, made-up names, widths, how often progress is told."""
    words = re.sub(r"tailrace_\w+", "NAME", text)
    words = re.sub(r"[0-9A-F]+/[0-9A-F]+|\d[\d,.:]*", "#", words)
    words = re.sub(r"# [KMG]?i?B", "# B", words)
    words = re.sub(r"rows copied .*", "rows copied", words)
    lines = [re.sub(r"[\s━─]+", " ", line).strip() for line in words.splitlines() if line.strip()]
    return [line for line, _ in itertools.groupby(lines)]


@pytest.mark.timeout(600)
def test_the_transcript_of_the_readme_happens(postgres: EmbeddedPostgres, database: str, tmp_path: Path) -> None:
    shop.load(database)
    path = f"{Path(sys.executable).parent}:{postgres.bin_dir}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "100"}
    for command, shown in _transcript():
        actual = subprocess.run(
            command.replace(README_DSN, database),
            shell=True,
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert actual.returncode == 0, f"{command}\n{actual.stdout}"
        assert _shape(actual.stdout) == _shape(shown), command
