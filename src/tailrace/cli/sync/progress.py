"""A connector's events on the terminal: bars while tables are copied, one living line while changes stream.

Where the output is not a terminal, a plain line now and then.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.console import Console, Group
from rich.live import Live
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.text import Text

from tailrace.cli.sizes import size_text
from tailrace.connector import events
from tailrace.connector.events import ConnectorState, Event, StreamProgressed
from tailrace.engine.door import WorkDone
from tailrace.model.copy_progress import TableProgress
from tailrace.model.table import TableId
from tailrace.model.table_state import TableRecord, TableState

PLAIN_SECONDS = 5.0


class TerminalProgress:
    """Shows events. Use as a context manager, so that the terminal is left tidy."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = Progress(
            TextColumn("  {task.description}"),
            BarColumn(bar_width=30),
            TaskProgressColumn(),
            TextColumn("{task.completed:,} of about {task.total:,} rows, {task.fields[rate]:,.0f} a second"),
            TimeRemainingColumn(),
            console=console,
        )
        self._tasks: dict[TableId, TaskID] = {}
        self._live: Live | None = None
        self._printed_at = 0.0
        self._shown_seq = -1
        self._status: StreamProgressed | None = None
        self._rows_told = 0
        self._resynced: dict[TableId, int] = {}
        """The copies that were told of."""
        self._trouble: str | None = None

    def __enter__(self) -> TerminalProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_line()
        self._stop_bars()

    def show(self, event: Event) -> None:
        """One event."""
        match event:
            case events.StateChanged(state, _):
                self._show_state(state)
            case events.SourcePrepared(done):
                for line in done:
                    self._say(line)
            case events.SparkStarting(master):
                self._say(starting_text(master))
            case events.SparkShown(address):
                self._say(f"Spark's own page: {address}")
            case events.SparkWorked(work):
                self._stop_line()
                self._print_figures()
                self._say(worked_text(work))
            case events.TableChanged(table, record):
                self._show_table(table, record)
            case events.SnapshotProgressed(tables):
                self._show_copies(tables)
            case events.TablesLanded(tables, text):
                self._drop_bars(tables)
                self._say(f"snapshot of {_counted(len(tables))}" + (f" at {text}" if text else ""))
            case events.TroubleChanged(message, hint):
                self._trouble = message
                self._say(message or "that is over; continuing", "yellow" if message else "dim")
                if hint:
                    self._say(f"hint: {hint}")
            case events.StreamProgressed():
                self._show_stream(event)

    def _say(self, line: str, style: str = "dim") -> None:
        self._console.print(f"[{style}]·[/{style}] {escape(line)}", highlight=False, soft_wrap=True)

    def _show_state(self, state: ConnectorState) -> None:
        match state:
            case ConnectorState.SNAPSHOTTING:
                self._say("copying existing rows; changes are logged meanwhile")
            case ConnectorState.RUNNING:
                self._say("streaming; Ctrl-C stops after the current batch")
            case ConnectorState.PAUSED:
                self._say("paused")
            case ConnectorState.STOPPED | ConnectorState.FAILED:
                self._stop_line()
                self._stop_bars()
                self._print_figures()

    def _show_table(self, table: TableId, record: TableRecord) -> None:
        """The states a person should know of; the usual way from pending to live is told by the bars."""
        reason = f": {record.reason}" if record.reason else ""
        if record.state is TableState.ERRORED:
            self._say(f"{table} is in error and left out from now on{reason}", "red")
            if record.hint:
                self._say(f"hint: {record.hint}")
        elif record.state is TableState.RESYNCING and self._resynced.get(table) != record.copy:
            self._resynced[table] = record.copy
            self._say(f"{table} is copied again{reason}", "yellow")
        elif record.state is TableState.REMOVED:
            self._say(f"{table} is left out from now on{reason}", "yellow")

    def _stop_bars(self) -> None:
        if self._bars.live.is_started:
            self._bars.stop()

    def _drop_bars(self, tables: Sequence[TableId]) -> None:
        """Of tables that have their rows. Bars that stand alone stay where they are, above what is said from now on."""
        self._stop_bars()
        for table in tables:
            if table in self._tasks:
                self._bars.remove_task(self._tasks.pop(table))

    def _stop_line(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _show_copies(self, tables: Sequence[TableProgress]) -> None:
        if self._console.is_terminal and self._live is None and tables and not self._bars.live.is_started:
            self._bars.start()
        for each in tables:
            if each.table not in self._tasks:
                self._tasks[each.table] = self._bars.add_task(str(each.table), total=each.rows_estimated, rate=0.0)
            bar = self._tasks[each.table]
            self._bars.update(bar, completed=each.rows_done, total=each.rows_estimated, rate=each.rows_per_second)
        done, total = sum(t.rows_done for t in tables), sum(t.rows_estimated for t in tables)
        if not self._console.is_terminal and total and done != self._rows_told and (done == total or self._is_due()):
            self._rows_told = done
            self._say(_copied_text(tables, done, total))
        if self._live is not None and self._status is not None:
            self._live.update(self._line(self._status))

    def _show_stream(self, status: StreamProgressed) -> None:
        self._status = status
        if self._console.is_terminal:
            if self._bars.live.is_started:
                return
            if self._live is None:
                self._live = Live(console=self._console, refresh_per_second=4)
                self._live.start()
            self._live.update(self._line(status))
        elif status.cut.seq != self._shown_seq and self._is_due():
            self._print_figures()

    def _print_figures(self) -> None:
        """How far it has got, as a line that stays, unless that is there already."""
        status = self._status
        if not self._console.is_terminal and status is not None and status.cut.seq != self._shown_seq:
            self._shown_seq = status.cut.seq
            self._console.print("  ".join(_figures(status)), highlight=False, soft_wrap=True)

    def _is_due(self) -> bool:
        if time.monotonic() - self._printed_at < PLAIN_SECONDS:
            return False
        self._printed_at = time.monotonic()
        return True

    def _line(self, status: StreamProgressed) -> Group:
        problem = [Text(f"  {self._trouble}", style="yellow")] if self._trouble else []
        bars = [self._bars.get_renderable()] if self._tasks else []
        return Group(*bars, Text.from_markup("  ".join(_figures(status))), *problem)


def _copied_text(tables: Sequence[TableProgress], done: int, total: int) -> str:
    """One line for all tables that are being copied."""
    rate = sum(each.rows_per_second for each in tables)
    left = f", about {max(0, total - done) / rate:,.0f} s left" if rate and done < total else ""
    speed = f" ({100 * done // total} %), {rate:,.0f} a second{left}" if rate else ""
    longest = max(each.held_seconds_max for each in tables)
    held = f", no state of the source held for longer than {longest:.1f} s" if longest else ""
    return f"{done:,} of about {total:,} rows copied{speed}{held}"


def starting_text(master: str) -> str:
    """What is said while Spark starts, which takes seconds."""
    return "starting Spark" if master.startswith("local") else f"starting Spark on {master}"


def worked_text(work: WorkDone) -> str:
    """What Spark did."""
    jobs, tasks = (
        ("1 job" if work.jobs == 1 else f"{work.jobs:,} jobs"),
        f"{work.tasks:,} task{'s' * (work.tasks != 1)}",
    )
    return f"Spark moved the rows: {jobs}, {tasks}"


def _counted(count: int) -> str:
    return "1 table" if count == 1 else f"{count} tables"


def _figures(status: StreamProgressed) -> list[str]:
    lag = f"lag {status.lag_seconds:.1f} s"
    return [
        f"  published [bold]{status.text}[/bold]",
        f"transaction {status.cut.seq:,} of {status.log_seq:,}",
        f"{status.changes_per_second:,.0f} changes/s",
        lag if status.lag_bytes is None else f"{lag}, {size_text(status.lag_bytes)}",
    ]
