"""`tailrace run FILE`: one connector in the foreground, as its configuration says. `sync` runs its own here too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tailrace import ending
from tailrace.cli.console import PlainConsole, print_json, print_table
from tailrace.cli.errors import shown_errors
from tailrace.cli.options import AsLines
from tailrace.cli.sync.console_beside import WantedConsole, shown_run
from tailrace.errors import DefiniteError
from tailrace.model.lake_address import LakeAddress

if TYPE_CHECKING:
    from tailrace.cli.sync.event_lines import EventLines
    from tailrace.cli.sync.progress import TerminalProgress
    from tailrace.configuration.reading import Configuration, PropertyCheck
    from tailrace.connector.connector import Connector
    from tailrace.connector.events import Event

_VERDICT_STYLES = {"refused": "red", "ignored": "yellow", "accepted": "green"}
NOTHING_YET = "interrupted: nothing was published by this run"


def run(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="The configuration: a .yaml, .json or .properties file.", show_default=False
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Catch up to now, publish, and exit.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Read the configuration and print it; run nothing.")] = False,
    keys: Annotated[bool, typer.Option("--keys", help="Print every key that a file may have; run nothing.")] = False,
    as_json: AsLines = False,
) -> None:
    """Run one connector as a file configures it, with Debezium's names for properties.

    What `sync` does, it does: the first run copies every table, the same command again continues. A property that
    means nothing here is warned of, one that would change what is copied is refused, by name.

        tailrace run shop.yaml
        tailrace run --check shop.yaml
        tailrace run --keys
    """
    with shown_errors(NOTHING_YET):
        from tailrace.configuration.files import load
        from tailrace.configuration.reading import read

        if keys:
            _print_keys(as_json=as_json)
            return
        if file is None:
            raise DefiniteError("name a configuration file", "tailrace run --keys prints every key that it may have")
        properties = load(file)
        if check:
            _print_checks(properties, as_json=as_json)
            read(properties)
            return
        configuration = read(properties)
        for warning in configuration.warnings:
            _warn(warning)
        run_connector(configuration, once=once, as_json=as_json)


def run_connector(
    configuration: Configuration, *, once: bool, as_json: bool = False, console: WantedConsole | None = None
) -> None:
    """To its end, shown on the terminal or as JSON lines. Exit code 1, with the tables named, when one is in error;
    130 when it was interrupted before it had published what it was to publish."""
    from tailrace.cli.sync.event_lines import EventLines
    from tailrace.cli.sync.progress import TerminalProgress
    from tailrace.cli.sync.stopped import has_published, kept_text, stopped_text
    from tailrace.connector.connector import Connector
    from tailrace.source.kinds import source_of

    settings = replace(configuration.settings, once=once or configuration.settings.once)
    connector = Connector(settings, source_of(configuration.dsn, **configuration.source_options))
    terminal = PlainConsole(stderr=as_json)
    watched = shown_run(connector, replace(configuration, settings=settings), console, partial(_say, terminal))
    with EventLines() if as_json else TerminalProgress(terminal) as progress, watched as running:
        shown = _Shown(progress, running.end)
        connector.subscribe(shown.show)
        # The second Ctrl-C does not wait for the batch in hand.
        ending.on_interrupt(
            f"interrupted: what is not published yet comes with the next run. {kept_text(settings.lake)}"
        )
        with ending.stopping(shown.stop):
            running.begin()
            while running.wait():
                pass
    if shown.was_stopped:
        text = stopped_text(settings.lake, is_prepared=shown.is_prepared)
        PlainConsole(stderr=True).print(Text(text), soft_wrap=True)
        if settings.once or not has_published(settings.lake):
            raise typer.Exit(ending.INTERRUPTED)
    _exit_by_tables(connector, settings.lake)


class _Shown:
    """A run that a person watches, and may stop. Events come by the connector's threads."""

    def __init__(self, progress: TerminalProgress | EventLines, end: Callable[[], None]) -> None:
        self._progress = progress
        self._end = end
        self._is_unread = False
        self.was_stopped = False
        self.is_prepared = False
        """Something was made at the source."""

    def stop(self) -> None:
        self.was_stopped = True
        self._end()

    def show(self, event: Event) -> None:
        from tailrace.connector.events import SourcePrepared

        self.is_prepared |= isinstance(event, SourcePrepared)
        try:
            if not self._is_unread:
                self._progress.show(event)
        except BrokenPipeError:
            # Whoever reads the output has had enough, as of any command: `tailrace sync … | head`.
            self._is_unread = True
            self.stop()


def _say(terminal: PlainConsole, line: str) -> None:
    terminal.print(escape(line), highlight=False, soft_wrap=True)


def _exit_by_tables(connector: Connector, lake: LakeAddress) -> None:
    from tailrace.model.table_state import TableState

    errored = [str(table) for table, record in connector.tables().items() if record.state is TableState.ERRORED]
    if errored:
        message = f"in error and left out: {', '.join(sorted(errored))}; tailrace tables {quote(str(lake))} says why"
        PlainConsole(stderr=True).print(escape(message), style="red", highlight=False, soft_wrap=True)
        raise typer.Exit(1)


def _print_checks(properties: dict[str, str], *, as_json: bool) -> None:
    """Every key that is given, as far as it may be shown."""
    from tailrace.configuration.reading import check

    given = [each for each in check(properties) if each.is_given]
    if as_json:
        for each in given:
            errors, warnings = list(each.errors), list(each.warnings)
            fields = {"key": each.name, "value": each.value, "verdict": _verdict(each)}
            print_json(fields | {"errors": errors, "warnings": warnings}, is_line=True)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("key", "value", "verdict"):
        table.add_column(column, overflow="fold")
    for each in given:
        verdict = _verdict(each)
        table.add_row(escape(each.name), escape(each.value or ""), Text(verdict, style=_VERDICT_STYLES[verdict]))
    print_table(PlainConsole(), table)
    for each in given:
        for warning in each.warnings:
            _warn(f"{each.name}: {warning}")


def _print_keys(*, as_json: bool) -> None:
    """Every key with its verdict, its default and what it means."""
    from tailrace.configuration.properties import all_properties

    for each in all_properties():
        if as_json:
            fields = {"key": each.name, "verdict": each.verdict, "default": each.default, "meaning": each.meaning}
            print_json(fields, is_line=True)
            continue
        default = "" if each.default is None else f", default {each.default}"
        typer.echo(f"{each.name}  ({each.verdict}{default})\n    {each.meaning}")


def _verdict(check: PropertyCheck) -> str:
    """Of the value that is given: one that asks for what happens anyway is fine, whatever its property."""
    if check.errors:
        return "refused"
    return "ignored" if check.warnings else "accepted"


def _warn(warning: str) -> None:
    PlainConsole(stderr=True).print(Text.assemble(("warning: ", "yellow"), warning), soft_wrap=True)
