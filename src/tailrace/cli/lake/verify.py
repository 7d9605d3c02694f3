"""`tailrace verify`: a lake compared with its source, watched and printed. Progress goes to standard error."""

from __future__ import annotations

import json

import typer
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tailrace.cli.console import PlainConsole, print_table
from tailrace.cli.sync.progress import TerminalProgress
from tailrace.connector.events import ConnectorState, SparkWorked, StateChanged, StreamProgressed
from tailrace.lake.home import LakeHome
from tailrace.settings import VerifySettings
from tailrace.source.door.source import Source
from tailrace.verify import events
from tailrace.verify.report import KeyDifference, LakeReport, RowDifference, TableReport, TableVerdict
from tailrace.verify.verification import Verification

STYLES = {
    TableVerdict.EQUAL: "green",
    TableVerdict.DIFFERENT: "red",
    TableVerdict.SHAPE_DIFFERS: "red",
    TableVerdict.NOT_COMPARED: "yellow",
    TableVerdict.LEFT_OUT: "dim",
}


def run_verify(settings: VerifySettings, source: Source, *, as_json: bool) -> None:
    """Print what was found. Exit code 1 unless every table that the lake follows is equal."""
    home = LakeHome.find(settings.lake)
    home.require_identity(source.identify())
    with VerifyProgress(PlainConsole(stderr=True)) as progress:
        report = Verification(settings, source, None, progress.show).run()
    if as_json:
        print(json.dumps(report.to_fields(), indent=2, ensure_ascii=False))
    else:
        render(report, PlainConsole())
    if not report.is_equal:
        raise typer.Exit(1)


class VerifyProgress:
    """Shows events: a bar of tasks on a terminal, else a line when something begins. Use as a context manager."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._sync = TerminalProgress(console)
        self._bars = Progress(
            TextColumn("  {task.description}"),
            BarColumn(bar_width=30),
            MofNCompleteColumn(),
            TextColumn("tasks"),
            TimeElapsedColumn(),
            console=console,
        )
        self._task: TaskID | None = None
        self._said: str | None = None
        self._has_synced = False

    def __enter__(self) -> VerifyProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self._sync.__exit__()
        if self._bars.live.is_started:
            self._bars.stop()

    def show(self, event: events.VerifyEvent) -> None:
        """One event."""
        match event:
            case events.WaitsFor(message, hint):
                self._say(message if hint is None else f"{message}\n  hint: {hint}")
            case events.PointTaken(text):
                self._say(f"comparing lake and source at {text}")
            case events.TasksProgressed(tasks_done, tasks):
                self._show_bar(tasks_done, tasks)
            case events.TableCompared():
                self._fill_bar()
            case StateChanged(ConnectorState.STARTING):
                if not self._has_synced:  # It may do so twice, the second time for the last commit alone.
                    self._say("no sync runs for this lake: bringing it up to date")
                self._has_synced = True
            case StateChanged(ConnectorState.RUNNING) | StreamProgressed() | SparkWorked() | events.TableJudged():
                pass
            case _:
                self._sync.show(event)

    def _say(self, line: str) -> None:
        if line != self._said:
            self._said = line
            self._console.print(Text.assemble(("· ", "dim"), line), highlight=False, soft_wrap=True)

    def _show_bar(self, done: int, total: int) -> None:
        if not self._console.is_terminal:
            return
        if self._task is None:
            self._bars.start()
            self._task = self._bars.add_task("comparing rows")
        self._bars.update(self._task, completed=done, total=total)

    def _fill_bar(self) -> None:
        if self._task is not None:
            self._bars.update(self._task, completed=self._bars.tasks[self._task].total)


def render(report: LakeReport, console: Console) -> None:
    """The tables, what differs in each, and where."""
    print_table(console, _table(report.tables))
    for each in report.tables:
        _explain(console, each)
    at = f", compared at {report.position}" if report.position else ""
    verdict = "every table is equal" if report.is_equal else "not every table is equal"
    console.print(f"\n{verdict}{at}", style="green" if report.is_equal else "red", highlight=False, soft_wrap=True)


def _table(tables: tuple[TableReport, ...]) -> Table:
    shown = Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    shown.add_column("table", overflow="fold")
    for heading in ("rows in source", "rows in lake", "differing"):
        shown.add_column(heading, justify="right")
    shown.add_column("verdict", no_wrap=True)
    for each in tables:
        is_compared = each.source_rows is not None
        counts = (each.source_rows, each.lake_rows, sum(each.differing.values()) if is_compared else None)
        texts = ("" if count is None else f"{count:,}" for count in counts)
        shown.add_row(Text(str(each.table)), *texts, Text(each.verdict, style=STYLES[each.verdict]))
    return shown


def _explain(console: Console, each: TableReport) -> None:
    """Why a table could not be compared, or which keys differ."""
    if each.reason is None and not each.keys:
        return
    console.print(Text.assemble("\n", (str(each.table), "bold"), ": ", _summary(each)), soft_wrap=True)
    if each.hint:
        console.print(Text.assemble(("  hint: ", "cyan"), each.hint), soft_wrap=True)
    shown = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for key in each.keys:
        shown.add_row(Text(key.difference, style="red"), Text(_key_text(key)), Text(_detail(key), style="dim"))
    if each.keys:
        print_table(console, Padding(shown, (0, 0, 0, 2), expand=False))
    left = sum(each.differing.values()) - len(each.keys)
    if each.keys and left:
        console.print(f"  and {left:,} more; --keys shows more of them", style="dim", highlight=False)


def _summary(each: TableReport) -> str:
    if each.reason is not None:
        return each.reason
    counts = (f"{each.differing[way]:,} {way}" for way in RowDifference if each.differing.get(way))
    return f"of its keys, {', '.join(counts)}"


def _key_text(each: KeyDifference) -> str:
    return ", ".join(f"{name} = {'null' if value is None else value}" for name, value in each.key.items())


def _detail(each: KeyDifference) -> str:
    if each.difference is RowDifference.CHANGED:
        return f"column{'s' if len(each.columns) > 1 else ''} {', '.join(each.columns)}"
    if each.source_rows and each.lake_rows:
        return f"{each.source_rows} in the source, {each.lake_rows} in the lake"
    return ""
