"""The living end of the demo: a server as `tailrace serve` runs it, whose one connector continues the lake while people
keep buying things. Its console is a page that moves."""

from __future__ import annotations

import json
import os
import shutil
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote_plus

from tailrace.errors import DefiniteError
from tailrace.server.answering import bound_to
from tailrace.server.serving import ServerSettings, Serving, serve
from tailrace.source.kinds import words_for

NAME = "shop"
HOST = "127.0.0.1"
PIN = "orders that do not add up"
PINNED = (
    "select count(*) from orders o where total is distinct from"
    " (select sum(quantity * unit_price) from order_items where order_id = o.id)"
    " or total <> (select sum(amount) from payments where order_id = o.id)"
)
"""Over three tables, which one transaction writes together: 0 at every commit of the shop."""
ANSWER_SECONDS = 60.0
LOOK_SECONDS = 0.5


def serve_page(folder: Path, dsn: str, port: int, say: Callable[[str], None]) -> None:
    """Until Ctrl-C. On another port where this one is taken."""
    home = folder / "server"
    # A connector of an earlier demo would look for its database where that was.
    shutil.rmtree(home, ignore_errors=True)
    settings = ServerSettings(home.absolute(), HOST, _free(port))
    ended = threading.Event()

    def ready(serving: Serving) -> None:
        threading.Thread(target=_begin, args=[serving, folder, dsn, say, ended], daemon=True).start()

    try:
        serve(settings, ready)
    finally:
        ended.set()


def page_of(address: str) -> str:
    """The connector's page, with the query pinned to it."""
    return f"{address}/ui/c/{NAME}?pin={quote_plus(f'{PIN}={PINNED}', safe='()*=.')}"


def _free(port: int) -> int:
    try:
        with bound_to(HOST, port):
            return port
    except DefiniteError:
        return 0


def _begin(serving: Serving, folder: Path, dsn: str, say: Callable[[str], None], ended: threading.Event) -> None:
    """Make the connector, as anyone does it over HTTP, and say where to look."""
    config = {
        "connector.class": words_for(dsn).classes[0],
        **words_for(dsn).address(dsn),
        "lake.path": str((folder / "lake").absolute()),
    }
    body = json.dumps({"name": NAME, "config": config}).encode()
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"{serving.address}/connectors", body, headers)
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS):
        pass
    say(f"[bold]open {serving.address}/ui/c/{NAME}[/bold]")
    say("  The page moves: commits arrive in the log and in the lake, and the sentence says how fresh the lake is.")
    say(f"  With a query over three tables pinned to it, which stays 0 at every cut:\n  {page_of(serving.address)}")
    _tell_captures(say, ended)


def _tell_captures(say: Callable[[str], None], ended: threading.Event) -> None:
    """How to kill the process that reads from the database, and, whenever there is another one, that it came back."""
    known: set[int] = set()
    while not ended.wait(LOOK_SECONDS):
        for pid in sorted(set(_captures()) - known):
            back = f"  capture is back as process {pid}; the page says what happened. Again:" if known else "  Try it:"
            say(f"{back} kill -9 {pid}")
            if not known:
                say("  It kills the process that reads from the database. Ctrl-C ends the demo.")
            known.add(pid)


def _captures() -> Iterator[int]:
    """Processes below this one that capture, where the system lists processes as Linux does."""
    parents = dict(_processes())
    for pid, (name, _) in parents.items():
        above = pid
        while above in parents and above != os.getpid():
            above = parents[above][1]
        if name == "capture" and above == os.getpid():
            yield pid


def _processes() -> Iterator[tuple[int, tuple[str, int]]]:
    """Every process with its name and its parent."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            before, _, after = path.read_text().rpartition(")")
        except OSError:
            continue
        yield int(path.parent.name), (before.partition("(")[2], int(after.split()[1]))
