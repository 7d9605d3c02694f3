"""The commands: `tailrace doctor | sync | query | tables | verify | drop | run | serve | …`.

Exit codes: 0 done, 1 a check found something or a table is in error, 2 an error with a hint, 130 interrupted.
"""

from __future__ import annotations

from typing import Annotated

import typer

from tailrace.cli.app import App, Commands
from tailrace.cli.completion import lake_tables
from tailrace.cli.environment import PREFIX
from tailrace.cli.errors import shown_errors
from tailrace.cli.given import Given
from tailrace.cli.lake import offsets as offset_commands
from tailrace.cli.lake import signals as signal_commands
from tailrace.cli.lake import tables as table_commands
from tailrace.cli.lake.ui import ANY_PORT, ConsoleCommand, Listen, Opens, TokenFile
from tailrace.cli.lake.ui import ui as ui_command
from tailrace.cli.log import commands as log_commands
from tailrace.cli.options import AsJson, AsLines, Dsn, EngineName, Lake, Position
from tailrace.cli.phrases import phrased
from tailrace.cli.server import serve as serve_commands
from tailrace.cli.server import sql as sql_commands
from tailrace.cli.sync.console_beside import wanted_console
from tailrace.cli.sync.doctor import doctor as doctor_command
from tailrace.cli.sync.drop import drop as drop_command
from tailrace.cli.sync.run import NOTHING_YET, run_connector
from tailrace.cli.sync.run import run as run_command
from tailrace.errors import DefiniteError

app = App(
    cls=Commands,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"auto_envvar_prefix": PREFIX},
)
app.command()(doctor_command)
app.command()(drop_command)
app.command()(run_command)
app.add_typer(table_commands.app, name="tables")
app.add_typer(log_commands.app, name="log")
app.command()(serve_commands.serve)
app.command()(ui_command)
app.add_typer(offset_commands.app, name="offsets")
app.command()(signal_commands.signal)
app.command()(signal_commands.signals)
app.command()(sql_commands.sql)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        typer.echo(f"tailrace {version('tailrace')}")
        raise typer.Exit


@app.callback(help=phrased("Copy a live {name} database into a data lake and keep the copy exact."))
def tailrace(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """What all commands have."""


@app.command()
def sync(  # noqa: PLR0913, PLR0917  each is an option
    dsn: Dsn,
    lake: Lake,
    once: Annotated[bool, typer.Option("--once", help="Catch up to now, publish, and exit.")] = False,
    as_json: AsLines = False,
    ui: Annotated[bool, typer.Option("--ui", help="Show the console of this lake while it runs.")] = False,
    listen: Listen = ANY_PORT,
    token_file: TokenFile = None,
    opens: Opens = False,
    *,
    given: Given,
) -> None:
    """Copy a database into a lake and keep the copy exact.

    The first run copies every table as of one commit, later ones continue. Ctrl-C stops after the current batch;
    {left} until the next run or `tailrace drop`. Exit code 1 with a table in error.
    """
    with shown_errors(NOTHING_YET):
        console = wanted_console(ConsoleCommand(listen, token_file, opens), given.written(), is_wanted=ui)
        run_connector(given.configuration(dsn, lake), once=once, as_json=as_json, console=console)


@app.command()
def query(  # noqa: PLR0913, PLR0917  each is an option
    lake: Lake,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="SQL of the engine; tables are named as in the source.")],
    published: Annotated[
        bool, typer.Option("--published", help="The last published cut, not the newest commit.")
    ] = False,
    as_of: Annotated[str | None, typer.Option(help="The state as of a position (0/16B3748) or a time, UTC.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Ask again at every new cut, until Ctrl-C.")] = False,
    engine: Annotated[
        EngineName, typer.Option(help="Who answers: DuckDB at once, or Spark (slow to start).")
    ] = EngineName.DUCKDB,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a row.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Comma-separated values with a header.")] = False,
    *,
    given: Given,
) -> None:
    """Run SQL over all tables of a lake, as of one commit.

    Every table shows the same commit of the source: the newest in the log by default, about a second old while
    `tailrace sync` runs. Shown on a terminal, wide values are cut to fit; a pipe, --csv and --json have all of them.

        tailrace query ./lake 'show tables'
        tailrace query ./lake 'select status, count(*) from orders group by status'
    """
    with shown_errors():
        from tailrace.cli.lake.query import Format, QueryCommand, run_query

        if json and csv:
            raise DefiniteError("--json and --csv exclude each other", "leave one out")
        style = Format.JSON if json else Format.CSV if csv else Format.TABLE
        spark = given.settings().spark
        run_query(QueryCommand(lake, sql, engine is EngineName.SPARK, style, published, as_of, spark), follow=follow)


@app.command()
def verify(
    dsn: Dsn,
    lake: Lake,
    tables: Annotated[
        list[str] | None,
        typer.Option(
            "--tables",
            "--table",
            help="Tables to compare, as patterns: 'public.*'. Repeatable.",
            autocompletion=lake_tables,
        ),
    ] = None,
    keys: Annotated[int, typer.Option(help="How many differing keys to print for each table.", min=0)] = 20,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
    *,
    given: Given,
) -> None:
    """Compare every row of a lake with its source, both as of one commit, and print the keys that differ.

    Works beside a running `sync` and beside writers: neither is held up, and what they do meanwhile is no difference.
    Without a running `sync`, the lake catches up first, as `sync --once` would do it. Reads each table once, as a
    copy does, and a large table that differs once more. Repair a table with `tailrace tables resync`.

    Exit code 0 when every table is equal, 1 when one differs or could not be compared, 2 for an error.

        tailrace verify {dsn} ./lake --table 'public.order*'
    """
    with shown_errors():
        from tailrace.cli.lake.verify import run_verify
        from tailrace.settings import VerifySettings
        from tailrace.source.kinds import source_of

        configuration = given.configuration(dsn, lake)
        chosen = configuration.settings
        settings = VerifySettings(
            lake, tuple(tables or ()), keys_max=keys, readers_max=chosen.readers_max, spark=chosen.spark
        )
        source = source_of(configuration.dsn, **configuration.source_options)
        run_verify(settings, source, as_json=json)


@app.command()
def wait(
    lake: Lake,
    at_least: Position = None,
    now: Annotated[bool, typer.Option("--now", help="Everything that the source has committed by now.")] = False,
    dsn: Annotated[str | None, typer.Option("--dsn", help="The database, which --now asks for its position.")] = None,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="How long at most.", min=0)] = 60.0,
    json: AsJson = False,
) -> None:
    """Wait until a lake shows everything that was committed up to a position of the source.

    For what follows a write: a test, a model, a report. Reads the lake's files only, and needs no server; something
    else must run `tailrace sync`. A table in error, or one that is being copied, is not waited for.

    Exit code 0 when it is reached, 1 when it is not in time, 2 for an error.

        tailrace wait ./lake --{position_word} 16/B374D848 --timeout 30
        tailrace wait ./lake --now --dsn {dsn}
    """
    with shown_errors():
        from tailrace.cli.lake.wait import WaitCommand, run_wait

        run_wait(WaitCommand(lake, at_least, now, dsn, timeout, json))


@app.command()
def maintain(
    lake: Lake,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; print what would be deleted.")] = False,
    as_json: AsJson = False,
    *,
    given: Given,
) -> None:
    """Bring a lake into good order and delete what no kept cut needs.

    Small files are merged and files with many deleted rows written again, checkpoints written, old cuts forgotten, and
    then every file, deletion vector and version deleted that none of the kept cuts and no younger version needs. The
    newest state of every table always stays. A running `sync` does all of this itself, in the pauses between publishes:
    this command is for lakes without one, and for disks that are full now. It ends with an error where a `sync` runs.

    Kept are every cut of the last hour (`--retain-all`), one every ten minutes of the last day, one an hour of the last
    week (`--retain`). Whoever reads an older cut at this moment gets an error, never wrong rows.

        tailrace maintain ./lake --dry-run
        tailrace maintain ./lake --retain 1d --retain-all 10min
    """
    with shown_errors():
        from tailrace.cli.lake.maintain import MaintainCommand, run_maintain
        from tailrace.lake.retention import Retention

        settings = given.settings(lake)
        retention = Retention(settings.retain_seconds, settings.retain_all_seconds)
        run_maintain(lake, MaintainCommand(retention, dry_run, as_json, settings.spark))
