"""The walk in docs/server.md happens as it is written."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from demo import shop
from tests.serving import process

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "server.md"
ADDRESS = "http://127.0.0.1:8083"


def _steps() -> list[tuple[str, str]]:
    steps: list[tuple[str, str]] = []
    for block in re.findall(r"^```console\n(.*?)^```", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
        steps += zip(parts[1::2], parts[2::2], strict=True)
    return steps


def _shape(text: str) -> str:
    """Without positions, times, ports and names of databases."""
    text = re.sub(r'"[0-9A-F]+/[0-9A-F]+"', '"POSITION"', text)
    text = re.sub(r'"\d{4}-[^"]+Z"', '"TIME"', text)
    text = re.sub(r'(127\.0\.0\.1:|"database.port":")\d+', r"\1PORT", text)
    return re.sub(r'"database.dbname":"\w+"', '"database.dbname":"NAME"', text).strip()


@pytest.mark.timeout(300)
def test_the_walk_of_the_server_happens(database: str, tmp_path: Path) -> None:
    shop.load(database)
    source = urlsplit(database)
    with process(tmp_path / "server") as server:
        for command, shown in _steps():
            real = command.replace(ADDRESS, server.address)
            real = real.replace('"database.port": "5432"', f'"database.port": "{source.port}"')
            real = real.replace('"database.dbname": "shop"', f'"database.dbname": "{source.path[1:]}"')
            done = subprocess.run(real, shell=True, capture_output=True, text=True, timeout=120, check=False)
            assert done.returncode == 0, (command, done.stderr)
            assert _shape(done.stdout) == _shape(shown), command
