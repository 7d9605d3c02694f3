"""Progress on the terminal: bars while tables are copied, one living line while changes stream.

Where the output is not a terminal, a plain line now and then.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from tailrace.cli.sizes import size_text
from tailrace.connector.status import Phase, StreamStatus
from tailrace.model.cut import PublishedCut
from tailrace.snapshot.initial import TableProgress

PLAIN_SECONDS = 5.0


class TerminalWatcher:
    """Shows a connector's progress. Use as a context manager, so the terminal is left tidy."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = Progress(
            TextColumn("  {task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("chunks, about {task.fields[rows]:,} rows"),
            TimeElapsedColumn(),
            console=console,
        )
        self._tasks: dict[str, object] = {}
        self._live: Live | None = None
        self._printed_at = 0.0
        self._shown: PublishedCut | None = None
        self._chunks_told = 0

    def __enter__(self) -> TerminalWatcher:
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
        self._stop_bars()

    def say(self, line: str) -> None:
        self._console.print(f"[dim]·[/dim] {escape(line)}", highlight=False, soft_wrap=True)

    def phase(self, phase: Phase) -> None:
        if phase is Phase.SNAPSHOTTING:
            self.say("copying the tables as they are; changes are being recorded meanwhile")
            if self._console.is_terminal:
                self._bars.start()
        else:
            self._stop_bars()
        if phase is Phase.RUNNING:
            self.say("streaming; Ctrl-C stops after the current batch")
        if phase is Phase.STOPPED and self._live is not None:
            self._live.stop()
            self._live = None

    def _stop_bars(self) -> None:
        if self._bars.live.is_started:
            self._bars.stop()

    def snapshot(self, tables: Sequence[TableProgress]) -> None:
        for table in tables:
            name = str(table.table)
            if name not in self._tasks:
                self._tasks[name] = self._bars.add_task(name, total=table.chunks, rows=table.rows_estimated)
            self._bars.update(self._tasks[name], completed=table.chunks_done)  # type: ignore[arg-type]
        done, total = sum(t.chunks_done for t in tables), sum(t.chunks for t in tables)
        if not self._console.is_terminal and total and done != self._chunks_told and (done == total or self._is_due()):
            self._chunks_told = done
            self.say(f"{done} of {total} chunks copied")

    def streaming(self, status: StreamStatus) -> None:
        if self._console.is_terminal:
            if self._live is None:
                self._live = Live(console=self._console, refresh_per_second=4)
                self._live.start()
            self._live.update(_line(status))
        elif status.cut != self._shown and self._is_due():
            self._shown = status.cut
            self._console.print("  ".join(_figures(status)), highlight=False, soft_wrap=True)

    def _is_due(self) -> bool:
        if time.monotonic() - self._printed_at < PLAIN_SECONDS:
            return False
        self._printed_at = time.monotonic()
        return True


def _line(status: StreamStatus) -> Group:
    problem = [Text(f"  {status.problem}", style="yellow")] if status.problem else []
    return Group(Text.from_markup("  ".join(_figures(status))), *problem)


def _figures(status: StreamStatus) -> list[str]:
    return [
        f"  published [bold]{status.cut.lsn}[/bold]",
        f"transaction {status.cut.seq:,} of {status.log_seq:,}",
        f"{status.changes_per_second:,.0f} changes/s",
        f"lag {status.lag_seconds:.1f} s, {size_text(status.lag_bytes)}",
    ]
