"""How the benchmarks show what they measured: tables for a terminal, and the memory that it took."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Sequence
from types import TracebackType

import psutil
from rich import box
from rich.console import Console
from rich.table import Table

SAMPLE_SECONDS = 0.1

console = Console(highlight=False, soft_wrap=True, width=None if sys.stdout.isatty() else 120)


def show(title: str, headings: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """One table; every column but the first is of numbers."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE, padding=(0, 1, 0, 0))
    for number, heading in enumerate(headings):
        table.add_column(heading, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console.print(table)


def seconds(value: float) -> str:
    return f"{value:.2f} s" if value < 10 else f"{value:.1f} s"


def processor_seconds() -> float:
    """What this process and those it has started have used of the processor: on a busy machine, the truer figure."""
    own = psutil.Process()
    used = 0.0
    for process in (own, *own.children(recursive=True)):
        try:
            if process == own or _kind(process.name()) is not None:
                times = process.cpu_times()
                used += times.user + times.system
        except psutil.NoSuchProcess:
            continue
    return used


class PeakMemory:
    """The most memory that this process and those it started had resident, looked at ten times a second.

    Pages that processes share count for each of them. Inside a `with`.
    """

    def __init__(self) -> None:
        self.mb: dict[str, float] = {}
        """By what a process is: `driver`, `jvm`, `python`, and `all` together at one moment."""
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()

    def _sample(self) -> None:
        own = psutil.Process()
        while not self._end.wait(SAMPLE_SECONDS):
            found = {"driver": own.memory_info().rss / 1e6}
            for child in own.children(recursive=True):
                try:
                    kind = _kind(child.name())
                    if kind is not None:
                        found[kind] = found.get(kind, 0.0) + child.memory_info().rss / 1e6
                except psutil.NoSuchProcess:
                    continue
            found["all"] = sum(found.values())
            self.mb = {kind: max(self.mb.get(kind, 0.0), found.get(kind, 0.0)) for kind in self.mb | found}

    def __str__(self) -> str:
        return ", ".join(f"{kind} {mb:,.0f} MB" for kind, mb in self.mb.items())


def _kind(name: str) -> str | None:
    """The database server is not ours to count."""
    if name.startswith("postgres"):
        return None
    return "jvm" if name.startswith("java") else "python"
