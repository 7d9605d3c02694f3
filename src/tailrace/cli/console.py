"""What commands print to. Nothing is cut or wrapped where the reader is a program, and values are shown as they are."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Sequence
from io import StringIO
from typing import Any

import typer
from rich.console import Console, RenderableType

WIDE = 1 << 20


class PlainConsole(Console):
    """A console that prints names such as `:x:` as they are, and no line ends in it but at the end of a line, where it
    is no terminal."""

    def __init__(self, **options: Any) -> None:
        super().__init__(emoji=False, **options)
        if not self.is_terminal:
            self.soft_wrap = True

    def on_broken_pipe(self) -> None:
        """`shown_errors` ends the command in silence."""
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def print_table(console: Console, table: RenderableType) -> None:
    """As wide as the terminal; elsewhere as wide as it needs, without spaces at the ends of lines."""
    if console.is_terminal:
        console.print(table)
    else:
        print_wide(console, table)


def print_wide(console: Console, table: RenderableType) -> None:
    """As wide as it needs."""
    text = StringIO()
    wide = Console(file=text, width=WIDE, emoji=False)
    wide.print(table, width=wide.measure(table).maximum)
    for line in text.getvalue().splitlines():
        console.print(line.rstrip(), soft_wrap=True, markup=False, highlight=False)


def print_json(value: Any, *, is_line: bool = False) -> None:
    """One JSON value, for programs: over several lines where a person may read it too, or one line of many."""
    typer.echo(json.dumps(value, indent=None if is_line else 2, ensure_ascii=False, default=str))


def fitting(widths: Sequence[int], room: int) -> int:
    """How wide a column may be so that all fit into `room`: only the widest ones have to be cut."""
    for place, width in enumerate(sorted(widths)):
        share = room // (len(widths) - place)
        if width > share:
            return share
        room -= width
    return max(widths, default=0)
