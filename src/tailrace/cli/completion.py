"""What the shell offers when a person presses Tab: nothing where it cannot be found out. A bucket is not asked, because
a person waits."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from pathlib import Path

_LINES = ("COMP_WORDS", "_TYPER_COMPLETE_ARGS")
"""Where shells say what has been typed: bash, then the others."""


def lake_tables(incomplete: str) -> list[str]:
    """The tables of the lake that the line names: `public.orders`, and `orders` for who begins to write that."""
    with suppress(Exception):
        from tailrace.lake.home import LakeHome

        # Not of the parsed arguments: those are lost where an option still lacks its value.
        lake = next(Path(word) for word in _words() if LakeHome(Path(word)).folder.is_dir())
        tables = sorted(LakeHome.find(lake).tables.load())
        whole = [str(table) for table in tables if str(table).startswith(incomplete)]
        return whole or [table.name for table in tables if table.name.startswith(incomplete)]
    return []


def _words() -> list[str]:
    line = next((os.environ[name] for name in _LINES if name in os.environ), "")
    return [os.path.expanduser(word) for word in shlex.split(line)[1:] if "://" not in word]
