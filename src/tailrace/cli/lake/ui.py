"""`tailrace ui`: the console of one lake, without a server; and what it shares with `tailrace sync --ui`."""

from __future__ import annotations

import sys
import threading
import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tailrace.cli.console import PlainConsole
from tailrace.cli.errors import shown_errors
from tailrace.cli.given import Given
from tailrace.cli.options import Lake
from tailrace.cli.server.serve import parse_address

if TYPE_CHECKING:
    from tailrace.configuration.reading import Configuration
    from tailrace.lake.home import LakeHome
    from tailrace.server.answering import Reached

ANY_PORT = "127.0.0.1:0"

Listen = Annotated[
    str, typer.Option("--listen", metavar="HOST:PORT", help="Where the console listens; port 0 is any free one.")
]
TokenFile = Annotated[
    Path | None, typer.Option("--token-file", metavar="FILE", help="A file with the token that the console asks for.")
]
Opens = Annotated[bool, typer.Option("--open", help="Open the console in a browser.")]


@dataclass(frozen=True)
class ConsoleCommand:
    """A console that a person has asked for."""

    listen: str = ANY_PORT
    token_file: Path | None = None
    opens: bool = False

    def reached(self) -> Reached:
        """A definite error for an address that makes no sense, or that others could reach without a token."""
        from tailrace.server.answering import Reached

        host, port = parse_address(self.listen)
        reached = Reached(host, port, self.token_file)
        reached.guard()
        return reached

    def show(self, address: str, warnings: Sequence[str], say: Callable[[str], None]) -> None:
        """Where the console is."""
        say(f"console at {address}")
        for warning in warnings:
            print(f"warning: {warning}", file=sys.stderr)
        if self.opens:
            # Some browsers keep whoever starts them waiting.
            threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()


def ui(
    lake: Lake,
    dsn: Annotated[
        str | None, typer.Option("--dsn", help="The database, for what only it can say; the console works without.")
    ] = None,
    listen: Listen = ANY_PORT,
    token_file: TokenFile = None,
    opens: Opens = False,
    *,
    given: Given,
) -> None:
    """Show the console of one lake, without a server.

    It works whether or not a `sync` runs on the lake in another process. It reads the lake's files, sends signals and
    copies tables again; offsets can be edited while nothing runs. A run is paused and stopped where it was started:
    `tailrace sync --ui` has the same pages and can do that too. Ctrl-C ends it. Without a token it listens on this
    machine alone.

        tailrace ui ./lake
        tailrace ui ./lake --dsn {dsn} --open
    """
    with shown_errors():
        from tailrace.server.lake_host.host import shown_config
        from tailrace.server.lake_host.serving import require_home, serve_lake

        command = ConsoleCommand(listen, token_file, opens)
        reached, home = command.reached(), require_home(lake)
        configuration = _configuration(given, home, dsn)
        console = PlainConsole(highlight=False, soft_wrap=True)
        serve_lake(
            configuration,
            shown_config(configuration),
            reached,
            lambda serving: command.show(serving.address, serving.warnings, console.print),
        )


def _configuration(given: Given, home: LakeHome, dsn: str | None) -> Configuration:
    """Of a connector that another process runs: what is known of it, and where its database is if that was said."""
    from tailrace.configuration.reading import Configuration
    from tailrace.server.lake_host.host import connector_name

    source = home.source()
    assert source is not None
    if dsn is not None:
        read = given.configuration(dsn, home.lake)
    else:
        read = Configuration("", source.kind, "", given.settings(home.lake), {}, (), "")
    # In offsets, the source is called as the lake knows it.
    return replace(read, name=connector_name(home.lake), server="")
