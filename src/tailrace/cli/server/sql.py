"""`tailrace sql`: statements about a server's sources, from the command line, a file or a prompt."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from tailrace import ending
from tailrace.cli.console import PlainConsole, print_table
from tailrace.cli.errors import shown_errors
from tailrace.errors import DefiniteError

if TYPE_CHECKING:
    import httpx

SERVER = "http://127.0.0.1:8083"
ANSWER_SECONDS = 180.0
"""A source that is dropped ends its batch first."""
PROMPT, MORE = "tailrace> ", "      ... "
STATEMENT_COLUMN = "create_sql"
"""Printed as it is, to be pasted."""
_STYLES = {"RUNNING": "green", "live": "green", "FAILED": "red", "errored": "red", "RESTARTING": "yellow"}


def sql(
    file: Annotated[Path | None, typer.Argument(help="A file of statements; - for standard input.")] = None,
    command: Annotated[str | None, typer.Option("--command", "-c", metavar="SQL", help="The statements.")] = None,
    server: Annotated[str, typer.Option(metavar="URL", help="Where the server is.")] = SERVER,
    token_file: Annotated[Path | None, typer.Option(help="A file with the server's token.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for each statement.")] = False,
) -> None:
    """Create, alter, drop and show the sources of a server.

    Without a file and without -c, a prompt. Exit code 2 for an error, after what the statements before it did.

        tailrace sql -c 'show sources'
        tailrace sql -c 'show create source shop'
        tailrace sql -c 'create source shop from {kind} host db database shop user ann for all tables'
        tailrace sql -c 'alter source shop add table public.orders'
        tailrace sql -c 'drop source shop'
        tailrace sql sources.sql --server https://lake.example.com --token-file token
    """
    with shown_errors():
        if file is not None and command is not None:
            raise DefiniteError("statements come from a file or from -c", "leave one out")
        client = _Client(server, None if token_file is None else _read(token_file).strip())
        show = _print_json if as_json else _print
        if command is None and file is None and sys.stdin.isatty():
            _converse(client, show)
            return
        text = command if command is not None else _read(file or Path("-"))
        if not _run(client, text, show):
            raise typer.Exit(2)


def _read(path: Path) -> str:
    if str(path) == "-":
        return sys.stdin.read()
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text in UTF-8"
        raise DefiniteError(f"cannot read {path}: {reason.lower()}", "name another file") from None


@dataclass(frozen=True)
class _Client:
    """One server."""

    url: str
    token: str | None

    def ask(self, text: str) -> dict[str, Any]:
        """Its answer, also where that is an error."""
        import httpx

        headers = {} if self.token is None else {"authorization": f"Bearer {self.token}"}
        try:
            answer = httpx.post(
                f"{self.url.rstrip('/')}/sql", json={"sql": text}, headers=headers, timeout=ANSWER_SECONDS
            )
        except (httpx.InvalidURL, httpx.UnsupportedProtocol, UnicodeEncodeError):
            raise DefiniteError(f"{self.url} is not the address of a server", f"it looks like {SERVER}") from None
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            hint = "start one: tailrace serve; or name another: --server URL"
            raise DefiniteError(f"no server answers at {self.url}: {reason}", hint) from None
        return self._body(answer)

    def _body(self, answer: httpx.Response) -> dict[str, Any]:
        if answer.status_code == 401:
            raise DefiniteError("the server requires a token", "name the file that has it: --token-file FILE")
        try:
            body = answer.json()
        except ValueError:
            body = None
        if not isinstance(body, dict) or not ("results" in body or "message" in body):
            raise DefiniteError(f"what answers at {self.url} is not a Tailrace server", "name another: --server URL")
        return body


def _run(client: _Client, text: str, show: Callable[[dict[str, Any]], None]) -> bool:
    """Whether all of it could be done."""
    body = client.ask(text)
    for result in body.get("results", []):
        show(result)
    if "error_code" not in body:
        return True
    console = PlainConsole(stderr=True, highlight=False, soft_wrap=True)
    message, _, hint = str(body["message"]).partition("\nhint: ")
    console.print(f"[red]error:[/red] {escape(message)}")
    if body.get("excerpt"):
        console.print(Text(body["excerpt"]))
    for line in hint.splitlines():
        console.print(f"[cyan]hint:[/cyan] {escape(line)}")
    return False


def _converse(client: _Client, show: Callable[[dict[str, Any]], None]) -> None:
    """Until the end of input. Nothing that is typed is kept: it may have a password in it."""
    import readline  # noqa: F401  lines can be edited

    from tailrace.server.sql.language.parsing import is_unfinished

    typed = ""
    while True:
        try:
            with ending.raised():
                line = input(MORE if typed else PROMPT)
        except EOFError:
            print()
            return
        except KeyboardInterrupt:
            print()
            typed = ""
            continue
        if not typed and line.strip().rstrip(";").lower() in ("exit", "quit", "\\q"):
            return
        typed = f"{typed}{line}\n"
        if not is_unfinished(typed):
            if typed.strip():
                _run(client, typed, show)
            typed = ""


def _print_json(result: dict[str, Any]) -> None:
    typer.echo(json.dumps(result, ensure_ascii=False))


def _print(result: dict[str, Any]) -> None:
    if "message" in result:
        typer.echo(result["message"])
        for note in result.get("notes", []):
            PlainConsole(stderr=True, highlight=False, soft_wrap=True).print(Text(f"note: {note}", style="yellow"))
        return
    columns, rows = result["columns"], result["rows"]
    if STATEMENT_COLUMN in columns:
        for row in rows:
            typer.echo(f"{row[columns.index(STATEMENT_COLUMN)]};")
        return
    shown = Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        shown.add_column(column, overflow="fold")
    for row in rows:
        shown.add_row(*(Text(cell or "", style=_STYLES.get(cell or "", "")) for cell in row))
    print_table(PlainConsole(), shown)
