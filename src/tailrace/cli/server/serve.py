"""`tailrace serve`: many connectors, and the REST API over them, in one process."""

from __future__ import annotations

import logging
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from tailrace.cli.console import PlainConsole
from tailrace.cli.errors import shown_errors
from tailrace.cli.given import Given
from tailrace.errors import DefiniteError

if TYPE_CHECKING:
    from tailrace.server.serving import Serving
    from tailrace.server.supervisor.hub import Told

LISTEN = "127.0.0.1:8083"
PORT_MAX = 65535


def serve(  # noqa: PLR0913, PLR0917  each is an option
    home: Annotated[Path, typer.Option(help="The server's folder: its state, and lakes that have no other.")] = Path(
        "tailrace-home"
    ),
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Where to listen.")] = LISTEN,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A file with the token that every request must bring.")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option(metavar="FILE", help="Serve TLS with this certificate.")] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="The certificate's key.")] = None,
    state_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="TAILRACE_STATE_URL",
            help="Keep the state here: postgresql://user@host/database. Default: a SQLite file in the folder.",
        ),
    ] = None,
    signal_folder: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where files of signals may lie, besides the server's folder.")
    ] = None,
    log_json: Annotated[
        bool, typer.Option("--log-json", help="Write messages as JSON lines to standard error.")
    ] = False,
    *,
    given: Given,
) -> None:
    """Host many connectors and answer Kafka Connect's REST API, and ours beside it.

    Connectors survive: started again, after whatever ended it, the server brings each to what was last wanted of it.
    Ctrl-C ends every connector after the batch in hand. Without a token it listens on this machine alone.

        tailrace serve --home ./server
        tailrace serve --listen 0.0.0.0:8083 --token-file ./token --tls-cert cert.pem --tls-key key.pem
    """
    with shown_errors():
        from tailrace.server.serving import ServerSettings
        from tailrace.server.serving import serve as run

        host, port = parse_address(listen)
        spark = given.settings().spark
        settings = ServerSettings(home, host, port, token_file, tls_cert, tls_key, state_url, spark, signal_folder)
        if log_json:
            _log_json()
        late = run(settings, lambda serving: _show(serving, quiet=log_json))
        if late:
            raise DefiniteError(
                f"not ended in time: {', '.join(late)}", "nothing is lost: they continue at the next start"
            )


def parse_address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not (port.isascii() and port.isdigit()) or int(port) > PORT_MAX:
        raise DefiniteError(f"--listen {listen} is not an address", f"it looks like {LISTEN} or [::1]:8083")
    return host.strip("[]"), int(port)


def _log_json() -> None:
    """Everything that ours and uvicorn say, as JSON lines."""
    from tailrace.connector.messages import JsonLines

    to_stderr = logging.StreamHandler(sys.stderr)
    to_stderr.setFormatter(JsonLines())
    for name in ("tailrace", "uvicorn"):
        logging.getLogger(name).addHandler(to_stderr)
        logging.getLogger(name).setLevel(logging.INFO)


def _show(serving: Serving, *, quiet: bool) -> None:
    """The address, then a line for each change of a connector's state."""
    console = PlainConsole(highlight=False, soft_wrap=True)
    console.print(f"listening on {serving.address}")
    for warning in serving.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    if not quiet:
        serving.supervisor.hub.subscribe(_Lines(console).show)


class _Lines:
    """A line whenever a connector's state is another one. Any thread."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.Lock()
        self._shown: dict[str, str] = {}

    def show(self, name: str, told: Told) -> None:
        line = _line(told)
        if line is None:
            return
        with self._lock:
            if self._shown.get(name) != line:
                self._shown[name] = line
                # A server whose messages no one reads any more serves on.
                with suppress(BrokenPipeError):
                    self._console.print(f"{escape(name)}: {escape(line)}")


def _line(told: Told) -> str | None:
    from tailrace.connector.events import StateChanged
    from tailrace.server.supervisor.hub import LifeChanged
    from tailrace.server.supervisor.lifecycle import Phase

    match told:
        case StateChanged(state, None):
            return state.value
        case LifeChanged(life) if life.phase is Phase.FAILED:
            return f"failed: {life.trace}"
        case LifeChanged(life) if life.phase is Phase.WAITING:
            return f"tried again in {life.retry_seconds:.0f} s: {life.trace}"
    return None
