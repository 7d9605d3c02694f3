"""`tailrace run FILE`: one connector in the foreground, as its configuration says. `sync` runs its own here too."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tailrace.cli.errors import shown_errors

if TYPE_CHECKING:
    from tailrace.configuration.reading import PropertyCheck
    from tailrace.connector.connector import Connector


def run(
    file: Annotated[Path, typer.Argument(help="The configuration: a .yaml, .json or .properties file.")],
    once: Annotated[bool, typer.Option("--once", help="Catch up to now, publish, and exit.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Read the configuration and print it; run nothing.")] = False,
) -> None:
    """Run one connector as a file configures it, with Debezium's names for properties.

    What `sync` does, it does: the first run copies every table, the same command again continues. A property that
    means nothing here is warned of, one that would change what is copied is refused, by name.

        tailrace run shop.yaml
        tailrace run --check shop.yaml
    """
    with shown_errors():
        from tailrace.configuration.files import load
        from tailrace.configuration.reading import read

        properties = load(file)
        if check:
            _print_checks(properties)
            read(properties)
            return
        configuration = read(properties)
        for warning in configuration.warnings:
            _warn(warning)
        from tailrace.connector.connector import Connector
        from tailrace.source.kinds import source_of

        settings = replace(configuration.settings, once=once or configuration.settings.once)
        connector = Connector(settings, source_of(configuration.dsn, **configuration.source_options))
        run_connector(connector, settings.lake)


def run_connector(connector: Connector, lake: Path) -> None:
    """To its end, shown on the terminal. Exit code 1, with the tables named, when one is in error."""
    from tailrace.cli.progress import TerminalProgress

    with TerminalProgress(Console(emoji=False)) as progress:
        connector.subscribe(progress.show)
        _stop_on_signal(connector.stop)
        connector.start()
        while not connector.wait(timeout_seconds=0.2):
            pass
    _exit_by_tables(connector, lake)


def _exit_by_tables(connector: Connector, lake: Path) -> None:
    from tailrace.model.table_state import TableState

    errored = [str(table) for table, record in connector.tables().items() if record.state is TableState.ERRORED]
    if errored:
        message = f"in error and left out: {', '.join(sorted(errored))}; tailrace tables {quote(str(lake))} says why"
        Console(stderr=True, emoji=False).print(escape(message), style="red", highlight=False, soft_wrap=True)
        raise typer.Exit(1)


def _stop_on_signal(stop: Callable[[], None]) -> None:
    def handle(number: int, _: object) -> None:
        stop()
        # The second one means it.
        signal.signal(number, signal.SIG_DFL)

    signal.signal(signal.SIGINT, handle)
    signal.signal(signal.SIGTERM, handle)


def _print_checks(properties: dict[str, str]) -> None:
    """Every key that is given, as far as it may be shown."""
    from tailrace.configuration.reading import check

    given = [each for each in check(properties) if each.is_given]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("key", "value", "verdict"):
        table.add_column(column, overflow="fold")
    for each in given:
        table.add_row(escape(each.name), escape(each.value or ""), _verdict(each))
    Console(highlight=False, emoji=False).print(table)
    for each in given:
        for warning in each.warnings:
            _warn(f"{each.name}: {warning}")


def _verdict(check: PropertyCheck) -> str:
    """Of the value that is given: one that asks for what happens anyway is fine, whatever its property."""
    if check.errors:
        return "[red]refused[/red]"
    return "[yellow]ignored[/yellow]" if check.warnings else "[green]accepted[/green]"


def _warn(warning: str) -> None:
    console = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
    console.print(f"[yellow]warning:[/yellow] {escape(warning)}")
