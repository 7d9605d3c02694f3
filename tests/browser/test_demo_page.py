"""The end of the demo: a page that moves, and a connector that survives what the demo invites you to do to it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

import pytest
from playwright.sync_api import Browser, Locator, expect
from tests.browsing import visiting

ROOT = Path(__file__).resolve().parents[2]
DEMO_SECONDS = 240.0


@contextmanager
def _demo(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Queue[str]]]:
    """`python -m demo`, and the lines that it prints. Killed at the end, if it lives."""
    command = [sys.executable, "-m", "demo", "--folder", str(folder), "--seconds", "0", "--port", "0"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines: Queue[str] = Queue()
    assert process.stdout is not None
    reading = threading.Thread(target=lambda: [lines.put(line) for line in process.stdout or ()])
    reading.start()
    try:
        yield process, lines
    finally:
        process.kill()
        process.wait()
        reading.join()
        process.stdout.close()


def _said(lines: Queue[str], pattern: str) -> str:
    """What a line of it says that comes from now on."""
    printed = []
    while True:
        printed.append(lines.get(timeout=DEMO_SECONDS))
        found = re.search(pattern, printed[-1])
        if found:
            return found[1]


def _seq(mark: Locator) -> int:
    found = re.search(r"transaction ([\d,]+)", mark.inner_text())
    return int(found[1].replace(",", "")) if found else 0


@pytest.mark.timeout(600)
def test_the_demo_ends_on_a_page_that_moves_and_survives_its_own_advice(browser: Browser, tmp_path: Path) -> None:
    with _demo(tmp_path / "demo") as (process, lines):
        address = _said(lines, r"open (http://\S+)/ui/c/shop")
        with visiting(browser, address) as visit:
            page = visit.open("/ui/c/shop")
            expect(page.locator("h1")).to_have_text("shop")
            lake = page.locator(".distance li.mark").last
            expect(lake).to_contain_text("transaction")
            captured = int(_said(lines, r"kill -9 (\d+)"))
            before = _seq(lake)
            subprocess.run(["kill", "-9", str(captured)], check=True)
            assert int(_said(lines, r"capture is back as process (\d+)")) != captured
            expect(lake).not_to_contain_text(f"transaction {before:,}")
            assert _seq(lake) > before
            expect(page.locator(".title")).to_contain_text("running")
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
