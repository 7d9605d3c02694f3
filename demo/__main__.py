"""`python -m demo`: a shop on an embedded Postgres, copied into a lake while people buy things in it."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import psycopg
import typer
from duckdb import DuckDBPyConnection
from rich.console import Console

import tailrace
from demo import shop
from demo.embedded import EmbeddedPostgres
from demo.page import serve_page
from tailrace.cli.lake.verify import run_verify
from tailrace.cli.sync.progress import TerminalProgress
from tailrace.connector.connector import Connector
from tailrace.engine.door import Engine
from tailrace.engine.spark.engine import SparkEngine
from tailrace.engine.spark.session import LazySession, session
from tailrace.errors import TailraceError
from tailrace.lake.formats import format_named
from tailrace.log.reader import LogReader
from tailrace.read.duckdb import connect
from tailrace.settings import ConnectorSettings, VerifySettings
from tailrace.source.kinds import source_of

# Far more than anything here takes; a machine that is busy with other things needs it.
PATIENCE_SECONDS = 180

console = Console(highlight=False)
app = typer.Typer(add_completion=False)


class DemoError(Exception):
    """One line for a person: the demo cannot continue."""


@app.command()
def demo(
    clean: Annotated[bool, typer.Option("--clean", help="Forget the last run: new database, new lake.")] = False,
    seconds: Annotated[float, typer.Option(help="How long orders come in while the lake follows.")] = 5.0,
    per_second: Annotated[float, typer.Option(help="Maximum number of transactions per second.")] = 20.0,
    folder: Annotated[Path, typer.Option(help="Folder for database and lake; kept between runs.")] = Path(".demo"),
    stay: Annotated[bool, typer.Option(help="End on a page in the browser that keeps moving, until Ctrl-C.")] = True,
    port: Annotated[int, typer.Option(help="The page's port; another one where it is taken.")] = 8083,
) -> None:
    """Copy a live shop database into a lake, prove that the two are equal, and show it in the console.

    1. Starts an embedded Postgres with a shop of about 100,000 rows.

    2. Runs what `tailrace sync` runs on it while orders come in: first a snapshot, then the stream.
    Meanwhile an order is placed and read back from the lake.

    3. Stops the orders, runs `tailrace sync --once` for the rest, and compares every row with `tailrace verify`.

    4. Runs what `tailrace serve` runs, with a connector for this lake, while orders come in again: open its page.
    `--no-stay` ends before this.

    A second run continues where the first one stopped, without a new snapshot;
    `--clean` starts from nothing. The exit code is 0 if source and lake are equal, 1 if
    they differ, 2 if the demo could not run.
    """
    started = time.monotonic()
    if clean:
        shutil.rmtree(folder, ignore_errors=True)
    try:
        with EmbeddedPostgres(folder / "postgres", durable=True) as server:
            dsn, equal = _run(server, folder, seconds, per_second)
            console.print(f"{time.monotonic() - started:.0f} s; database and lake are in [bold]{folder}[/bold]")
            if stay and equal:
                _stay(folder, dsn, per_second, port)
    except (DemoError, TailraceError, RuntimeError, psycopg.Error) as error:
        console.print(f"demo: {error}", style="red", markup=False)
        if hint := getattr(error, "hint", None):
            console.print(f"  hint: {hint}", markup=False)
        raise typer.Exit(2) from None
    raise typer.Exit(0 if equal else 1)


def _run(server: EmbeddedPostgres, folder: Path, seconds: float, per_second: float) -> tuple[str, bool]:
    """The database, and whether the lake equals it."""
    lake = folder / "lake"
    start = partial(session, format_named("delta"), folder / "spark.log")
    with SparkEngine(LazySession(start)) as engine:
        # Beside the database: its first rows are moved by Spark.
        engine.start_soon()
        _heading(f"Postgres {server.version} on port {server.port}")
        dsn = server.create_database("shop")
        console.print("shop loaded" if shop.load(dsn) else "found the shop of the last run; this run continues there")
        _heading(f"tailrace sync {dsn} {lake}")
        with _connector(ConnectorSettings(lake), dsn, engine) as connector, shop.Workload(dsn, per_second) as workload:
            _wait_for(connector, lambda: connector.status().cut is not None)
            with connect() as duckdb:
                first_read = _read_live(dsn, duckdb, lake)
                connector.wait(seconds)
                second_read = _read_live(dsn, duckdb, lake)
        _heading(f"tailrace sync --once {dsn} {lake}")
        with _connector(ConnectorSettings(lake, once=True), dsn, engine) as connector:
            _wait_for(connector, lambda: connector.wait(0))
        _heading("live reads: two orders, placed and read from the lake while the workload ran")
        _show(*first_read)
        _show(*second_read)
        console.print(f"workload: {workload.committed} transactions committed, {workload.rolled_back} rolled back")
        equal = _verify(dsn, lake)
        console.print(f"Spark: {engine.done.jobs} jobs, {engine.done.tasks} tasks; the driver held no row")
        return dsn, equal


def _stay(folder: Path, dsn: str, per_second: float, port: int) -> None:
    _heading(f"tailrace serve --home {folder / 'server'}, while orders come in")
    with shop.Workload(dsn, per_second):
        serve_page(folder, dsn, port, lambda line: console.print(line, soft_wrap=True))


@contextmanager
def _connector(settings: ConnectorSettings, dsn: str, engine: Engine) -> Iterator[Connector]:
    """What `tailrace sync` runs, on this terminal. Leaving stops it."""
    connector = Connector(settings, source_of(dsn), engine)
    with TerminalProgress(console) as progress:
        connector.subscribe(progress.show)
        connector.start()
        try:
            yield connector
        finally:
            connector.stop()
            connector.wait(PATIENCE_SECONDS)


def _wait_for(connector: Connector, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if connector.wait(0.05) and not condition():
            raise DemoError("the connector ended too early")
        if time.monotonic() > deadline:
            raise DemoError(f"the connector took more than {PATIENCE_SECONDS} seconds")


def _read_live(dsn: str, duckdb: DuckDBPyConnection, lake: Path) -> tuple[float, dict[str, Any]]:
    """Places an order, and reads the newest cut until the order is in it."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        with connection.transaction():
            order = shop.place_order(connection, random.Random())
        committed = time.monotonic()
    _wait_for_log(dsn, lake)
    while time.monotonic() - committed < PATIENCE_SECONDS:
        if row := _order_in_lake(duckdb, lake, order):
            return time.monotonic() - committed, row
    raise DemoError(f"order {order} was not in the lake {PATIENCE_SECONDS} seconds after its commit")


def _wait_for_log(dsn: str, lake: Path) -> None:
    """Until what is committed now is durable in the log: milliseconds. A read before that would only be repeated."""
    end = source_of(dsn).now()
    log = LogReader(lake / "_tailrace" / "log")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while log.refresh().ordinal < end.ordinal:
        if time.monotonic() > deadline:
            raise DemoError(f"the commit is not in the log after {PATIENCE_SECONDS} seconds")
        time.sleep(0.01)


def _order_in_lake(duckdb: DuckDBPyConnection, lake: Path, order: int) -> dict[str, Any] | None:
    found = tailrace.cut(duckdb, lake, register=False).sql(_ORDER.format(order=order)).to_arrow_table()
    return next(iter(found.to_pylist()), None)


_ORDER = """
select o.id as order_id, o.status, o.total, count(*) as items, first(p.amount) as paid
from orders o
join order_items i on i.order_id = o.id
join payments p on p.order_id = o.id
where o.id = {order}
group by o.id, o.status, o.total
"""


def _show(seconds: float, order: dict[str, Any]) -> None:
    values = ", ".join(f"{name} {value}" for name, value in order.items())
    console.print(f"readable {seconds:.1f} s after its commit: {values}", soft_wrap=True)


def _verify(dsn: str, lake: Path) -> bool:
    _heading(f"tailrace verify {dsn} {lake}")
    try:
        run_verify(VerifySettings(lake), source_of(dsn), as_json=False)
    except typer.Exit as ended:
        return ended.exit_code == 0
    return True


def _heading(text: str) -> None:
    console.print(f"\n[bold]▶ {text}[/bold]", soft_wrap=True)


if __name__ == "__main__":
    app()
