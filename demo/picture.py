"""`python -m demo.picture`: the README's picture, made from a real run of the command line.

A pseudo-terminal runs `tailrace sync` on the embedded shop while people buy things in it, then `tailrace query`. What
the screen shows at the end becomes an SVG. Nothing in it is written by hand but the prompts.
"""

from __future__ import annotations

import codecs
import fcntl
import io
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from demo import shop
from demo.embedded import EmbeddedPostgres

COLUMNS = 104
STREAM_SECONDS = 40.0
PATIENCE_SECONDS = 600.0
SQL = "select status, count(*), sum(total) from orders group by status order by 1"
SHOWN_DSN = "postgresql://postgres@127.0.0.1:5432/shop"
PROMPT = "\x1b[1;32m$\x1b[0m "
_CONTROL = re.compile(r"\x1b\[(\d*)([A-Za-z])|\x1b\[\?\d+[hl]|\r|\n")
_FONT_FACE = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
_CUT_SHORT = re.compile(r"\x1b[^A-Za-z]*$")


class Screen:
    """What a terminal shows of some output: knows the controls that rich's live displays use, and keeps colours."""

    def __init__(self) -> None:
        self.lines = [""]
        self._row = 0

    def write(self, output: str) -> None:
        start = 0
        for control in _CONTROL.finditer(output):
            if control.group(2) == "m":
                continue
            self._put(output[start : control.start()])
            start = control.end()
            self._obey(control)
        self._put(output[start:])

    def _put(self, text: str) -> None:
        self.lines[self._row] += text

    def _obey(self, control: re.Match[str]) -> None:
        count = int(control.group(1) or 1) if control.group(2) else 0
        if control.group(0) == "\n":
            self._row += 1
            if self._row == len(self.lines):
                self.lines.append("")
        elif control.group(2) == "A":
            self._row = max(0, self._row - count)
        elif control.group(2) == "K":
            self.lines[self._row] = ""


class Session:
    """Commands in one pseudo-terminal after the other; `screen` has what they showed."""

    def __init__(self, folder: Path) -> None:
        self.screen = Screen()
        self._folder = folder

    def run(self, shown: str, arguments: Sequence[str], end_after_seconds: float | None = None) -> None:
        """Run `tailrace` with these arguments under a prompt that shows `shown`; press Ctrl-C when the time is over."""
        self.screen.write(f"{PROMPT}\x1b[1m{shown}\x1b[0m\r\n")
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
        command = [sys.executable, "-m", "tailrace.cli.main", *arguments]
        environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
        process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, cwd=self._folder, env=environment
        )
        os.close(theirs)
        reader = threading.Thread(target=self._read, args=(ours,))
        reader.start()
        try:
            if end_after_seconds is not None:
                _wait_for_stream(self.screen, process)
                time.sleep(end_after_seconds)
                process.send_signal(signal.SIGINT)
            process.wait(PATIENCE_SECONDS)
        finally:
            process.kill()
            reader.join()

    def _read(self, descriptor: int) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")()
        pending = ""
        while True:
            try:
                pending += decoder.decode(os.read(descriptor, 65536))
            except OSError:
                break
            cut_short = _CUT_SHORT.search(pending)
            end = cut_short.start() if cut_short else len(pending)
            self.screen.write(pending[:end])
            pending = pending[end:]
        os.close(descriptor)


def _wait_for_stream(screen: Screen, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not any("published" in line for line in screen.lines):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError("sync did not get to streaming: " + "\n".join(screen.lines))
        time.sleep(0.1)


def draw(lines: Sequence[str], target: Path) -> None:
    """The lines, colours included, as an SVG of a terminal."""
    console = Console(record=True, width=COLUMNS, force_terminal=True, file=io.StringIO())
    for number, line in enumerate(lines):
        if number and line.startswith(PROMPT):
            console.print()
        console.print(Text.from_ansi(line), soft_wrap=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    drawn = console.export_svg(title="tailrace", theme=MONOKAI)
    # A picture that needs nothing from elsewhere: the reader's own monospaced font will do.
    target.write_text(_FONT_FACE.sub("", drawn), encoding="utf-8")


def main(target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="tailrace-picture-") as folder:
        with EmbeddedPostgres(Path(folder, "postgres")) as server:
            dsn = server.create_database("shop")
            shop.load(dsn)
            session = Session(Path(folder))
            with shop.Workload(dsn, per_second=40):
                session.run(f"tailrace sync {SHOWN_DSN} ./lake", ["sync", dsn, "./lake"], STREAM_SECONDS)
            session.screen.write("\r\n")
            session.run(f'tailrace query ./lake "{SQL}"', ["query", "./lake", SQL])
        draw([line for line in session.screen.lines if line.strip()], target)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/images/sync.svg"))
