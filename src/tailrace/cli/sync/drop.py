"""`tailrace drop`: remove what syncs made in a database, with their lake or without it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from tailrace.cli.console import PlainConsole
from tailrace.cli.errors import shown_errors
from tailrace.cli.given import Given
from tailrace.cli.options import Dsn
from tailrace.errors import DefiniteError
from tailrace.model.lake_address import LakeAddress

if TYPE_CHECKING:
    from tailrace.source.door.source import Source
    from tailrace.source.door.stream import Stream


def drop(
    dsn: Dsn,
    lake: Annotated[
        LakeAddress | None,
        typer.Argument(metavar="LAKE", help="The lake's folder, where it still is.", show_default=False),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Drop all that Tailrace made in this database.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    *,
    given: Given,
) -> None:
    """Remove {made} that `sync` made in the database.

    Until then {holds}, even after the lake's folder was deleted, and its disk may fill up. The lake's tables stay, but
    they can no longer be brought up to date. With LAKE, only what Tailrace created for it is removed. Without it, name
    what to drop (`tailrace doctor` lists it), or take --all: what is being read stays.

        tailrace drop {dsn} ./lake
        tailrace drop {dsn} --all
    """
    with shown_errors():
        from tailrace.source.kinds import source_of, words_for

        word = words_for(dsn).leftover
        name = given.named(word)
        if [lake is not None, name is not None, everything].count(True) != 1:
            raise DefiniteError("name what to drop", f"one of: tailrace drop DSN LAKE, --{word} NAME, --all")
        source = source_of(dsn)
        for line in _of_lake(source, lake, word, yes=yes) if lake else _without_lake(source, word, name, yes=yes):
            PlainConsole().print(Text(line), soft_wrap=True)


def _of_lake(source: Source, lake: LakeAddress, word: str, *, yes: bool) -> list[str]:
    from tailrace.connector.drop import drop_source
    from tailrace.lake.home import LakeHome

    if LakeHome.is_new(lake):
        # It may have been deleted, and what was made for it is still there.
        hint = f"if it was deleted: tailrace drop DSN --all, or --{word} NAME; tailrace doctor DSN lists them"
        raise DefiniteError(f"{lake} is not a Tailrace lake", hint)
    _confirm("The lake cannot be brought up to date afterwards. Continue?", yes=yes)
    return drop_source(source, lake)


def _without_lake(stream: Stream, word: str, name: str | None, *, yes: bool) -> list[str]:
    from tailrace.connector.drop import drop_leftovers

    left = stream.leftovers(name)
    names = ", ".join(str(claim.get(word)) for claim in left.claims)
    if not left.claims:
        return [*left.in_use, "there is nothing to drop"]
    if name is None and not yes and not sys.stdin.isatty():
        raise DefiniteError(f"--all would drop {names}", "add --yes")
    _confirm(f"This drops {names}. Lakes that use it cannot be brought up to date afterwards. Continue?", yes=yes)
    return [*left.in_use, *drop_leftovers(stream, left.claims)]


def _confirm(question: str, *, yes: bool) -> None:
    if not yes and sys.stdin.isatty():
        typer.confirm(question, abort=True)
