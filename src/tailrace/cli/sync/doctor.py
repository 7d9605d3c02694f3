"""`tailrace doctor`: what stands between a database and its copy. What is to be run is never cut: it is pasted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import typer
from rich.console import Console
from rich.text import Text

from tailrace.cli.console import PlainConsole, print_json
from tailrace.cli.errors import shown_errors
from tailrace.cli.given import Given
from tailrace.cli.options import AsJson, Dsn
from tailrace.source.door.tables import Check

_MARKS = {True: ("✓  ", "green"), False: ("✗  ", "red"), None: ("!  ", "yellow")}


def doctor(dsn: Dsn, as_json: AsJson = False, *, given: Given) -> None:
    """Check whether a database can be copied, and print the SQL that fixes what cannot.

    Exit code 1 when something must be fixed first.
    """
    with shown_errors():
        from tailrace.source.kinds import source_of

        configuration = given.configuration(dsn)
        settings = configuration.settings
        source = source_of(configuration.dsn, **configuration.source_options).watermarked(settings.watermarking)
        checks = source.examine(settings.tables, settings.exclude)
        is_ready = not any(check.ok is False for check in checks)
        if as_json:
            print_json({"ready": is_ready, "checks": [asdict(check) for check in checks]})
        else:
            render(checks, PlainConsole())
        if not is_ready:
            raise typer.Exit(1)


def render(checks: Sequence[Check], console: Console) -> None:
    """Print the checks and a last line that says whether a sync can start."""
    width = max((len(check.name) for check in checks), default=0)
    for check in checks:
        heading = Text.assemble(_MARKS[check.ok], f"{check.name:<{width}}  ", check.found)
        console.print(heading, soft_wrap=True, highlight=False)
        for line in (check.fix or "").splitlines():
            console.print(Text(f"   {line}", style="bold" if check.ok is False else "dim"), soft_wrap=True)
    failed = sum(check.ok is False for check in checks)
    if failed:
        console.print(f"{failed} of {len(checks)} checks failed", style="red")
    else:
        console.print("ready to sync", style="green")
