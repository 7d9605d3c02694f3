"""The doctor's findings on a terminal. What is to be run has lines of its own, which are never cut: they are pasted."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from tailrace.source.door.tables import Check

_MARKS = {True: ("✓  ", "green"), False: ("✗  ", "red"), None: ("!  ", "yellow")}


def render(checks: Sequence[Check], console: Console) -> None:
    """Print the checks and a last line that says whether a sync can start."""
    width = max((len(check.name) for check in checks), default=0)
    for check in checks:
        found = Text.assemble(_MARKS[check.ok], f"{check.name:<{width}}  ", check.found)
        console.print(found, soft_wrap=True, highlight=False)
        for line in (check.fix or "").splitlines():
            console.print(Text(f"   {line}", style="bold" if check.ok is False else "dim"), soft_wrap=True)
    failed = sum(check.ok is False for check in checks)
    if failed:
        console.print(f"{failed} of {len(checks)} checks failed", style="red")
    else:
        console.print("ready to sync", style="green")
