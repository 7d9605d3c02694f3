"""The doctor's findings on a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tailrace.source.door import Check

_MARKS = {True: Text("✓", style="green"), False: Text("✗", style="red"), None: Text("!", style="yellow")}


def table(checks: Sequence[Check]) -> Table:
    """One row for each check: its mark, what was found, and what to do about it."""
    grid = Table(box=None, show_header=False, pad_edge=False)
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    grid.add_column(ratio=1)
    for check in checks:
        found = Text(check.found)
        if check.fix is not None:
            found.append(f"\n{check.fix}", style="bold" if check.ok is False else "dim")
        grid.add_row(_MARKS[check.ok], Text(check.name), found)
    return grid


def render(checks: Sequence[Check], console: Console) -> None:
    """Print the checks and a last line that says whether a sync can start."""
    console.print(table(checks))
    failed = sum(check.ok is False for check in checks)
    if failed:
        console.print(f"{failed} of {len(checks)} checks failed", style="red")
    else:
        console.print("ready to sync", style="green")
