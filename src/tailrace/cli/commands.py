"""The commands: `tailrace doctor | sync | query | tables | verify | drop | run | serve | …`.

Exit codes: 0 done, 1 a check found something or a table is in error, 2 an error with a hint, 130 interrupted.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tailrace.cli import log as log_commands
from tailrace.cli import offsets as offset_commands
from tailrace.cli import serve as serve_commands
from tailrace.cli import signals as signal_commands
from tailrace.cli import sql as sql_commands
from tailrace.cli import tables as table_commands
from tailrace.cli.app import App, Commands
from tailrace.cli.columns import choices
from tailrace.cli.console import PlainConsole
from tailrace.cli.drop import drop as drop_command
from tailrace.cli.errors import shown_errors
from tailrace.cli.options import (
    LOCAL,
    AppendOnly,
    AsDecimal,
    AsText,
    ChooseMode,
    ChooseOrigin,
    ChunkRows,
    Dsn,
    EngineName,
    Exclude,
    FailoverSlot,
    GeneratedColumns,
    Lake,
    LogCompression,
    LogQuota,
    LogSegment,
    Origin,
    Publication,
    PublishEvery,
    Retain,
    RetainAll,
    SignalFile,
    SignalTable,
    Slot,
    SparkConf,
    SparkMaster,
    SparkUi,
    Tables,
    TwoPhase,
    Watermarks,
)
from tailrace.cli.run import NOTHING_YET, run_connector
from tailrace.cli.run import run as run_command
from tailrace.cli.spark import spark_settings
from tailrace.configuration.quantities import (
    LOG_QUOTA_BYTES_MIN,
    LOG_SEGMENT_BYTES_MIN,
    parse_duration,
    parse_size,
)
from tailrace.errors import DefiniteError
from tailrace.settings import ConnectorSettings, SnapshotMode, Watermarking

app = App(
    cls=Commands,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.command()(drop_command)
app.command()(run_command)
app.add_typer(table_commands.app, name="tables")
app.add_typer(log_commands.app, name="log")
app.command()(serve_commands.serve)
app.add_typer(offset_commands.app, name="offsets")
app.command()(signal_commands.signal)
app.command()(signal_commands.signals)
app.command()(sql_commands.sql)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        from importlib.metadata import version

        typer.echo(f"tailrace {version('tailrace')}")
        raise typer.Exit


@app.callback()
def tailrace(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Copy a live Postgres database into a data lake and keep the copy exact."""


@app.command()
def sync(  # noqa: PLR0913, PLR0917  each is an option
    dsn: Dsn,
    lake: Lake,
    tables: Tables = None,
    exclude: Exclude = None,
    append_only: AppendOnly = None,
    as_text: AsText = None,
    as_decimal: AsDecimal = None,
    generated_columns: GeneratedColumns = False,
    once: Annotated[bool, typer.Option("--once", help="Catch up to now, publish, and exit.")] = False,
    publish_every: PublishEvery = 1.0,
    publication: Publication = None,
    slot: Slot = None,
    failover_slot: FailoverSlot = False,
    two_phase: TwoPhase = False,
    origin: ChooseOrigin = Origin.ANY,
    readers: Annotated[int, typer.Option(help="How many connections read rows at once during a copy.", min=1)] = 16,
    log_quota: LogQuota = None,
    log_compression: LogCompression = None,
    log_segment: LogSegment = "256MB",
    spark_master: SparkMaster = LOCAL,
    spark_conf: SparkConf = None,
    spark_ui: SparkUi = False,
    retain: Retain = "7d",
    retain_all: RetainAll = "1h",
    signal_table: SignalTable = None,
    signal_file: SignalFile = None,
    watermarks: Watermarks = Watermarking.READ_ONLY,
    snapshot_mode: ChooseMode = SnapshotMode.INITIAL,
    chunk_rows: ChunkRows = None,
) -> None:
    """Copy a database into a lake and keep the copy exact.

    The first run copies every table as of one commit, later ones continue. Ctrl-C stops after the current batch; the
    slot stays in the database and keeps WAL until the next run or `tailrace drop`. Exit code 1 with a table in error.
    """
    with shown_errors(NOTHING_YET):
        from tailrace.source.kinds import source_of

        settings = ConnectorSettings(
            lake,
            tables=tuple(tables or ()),
            exclude=tuple(exclude or ()),
            once=once or snapshot_mode is SnapshotMode.INITIAL_ONLY,
            snapshot_mode=snapshot_mode,
            window_rows=chunk_rows,
            publish_every_seconds=publish_every,
            readers_max=readers,
            log_quota_bytes=None if log_quota is None else parse_size("--log-quota", log_quota, LOG_QUOTA_BYTES_MIN),
            log_compression=log_compression,
            log_segment_bytes_max=parse_size("--log-segment", log_segment, LOG_SEGMENT_BYTES_MIN),
            spark=spark_settings(spark_master, spark_conf, ui=spark_ui),
            signal_table=signal_table,
            signal_file=signal_file,
            watermarking=watermarks,
            **_retention(retain, retain_all),
        )
        names = {"slot": slot, "publication": publication, "signal_table": signal_table}
        columns = _columns(append_only, choices(as_text, as_decimal), generated_columns)
        run_connector(settings, source_of(dsn, **names, **columns, **_stream(two_phase, origin, failover_slot)))


def _stream(two_phase: bool, origin: Origin, failover: bool) -> dict[str, Any]:
    return {"stream": {"two_phase": two_phase, "origin": str(origin), "failover": failover}}


def _columns(append_only: list[str] | None, chosen: list[str], generated: bool) -> dict[str, Any]:
    return {"append_only": append_only or [], "as_text": chosen, "generated": generated}


def _retention(retain: str, retain_all: str) -> dict[str, Any]:
    lengths = ("retain_seconds", "--retain", retain), ("retain_all_seconds", "--retain-all", retain_all)
    return {name: parse_duration(option, given) for name, option, given in lengths}


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
    spark_master: SparkMaster = LOCAL,
    spark_conf: SparkConf = None,
) -> None:
    """Run SQL over all tables of a lake, as of one commit.

    Every table shows the same commit of the source: the newest in the log by default, about a second old while
    `tailrace sync` runs. Shown on a terminal, wide values are cut to fit; a pipe, --csv and --json have all of them.

        tailrace query ./lake 'show tables'
        tailrace query ./lake 'select status, count(*) from orders group by status'
    """
    with shown_errors():
        from tailrace.cli.query import Format, Query, run_query

        if json and csv:
            raise DefiniteError("--json and --csv exclude each other", "leave one out")
        style = Format.JSON if json else Format.CSV if csv else Format.TABLE
        spark = spark_settings(spark_master, spark_conf)
        run_query(Query(lake, sql, engine is EngineName.SPARK, style, published, as_of, spark), follow=follow)


@app.command()
def verify(  # noqa: PLR0913, PLR0917  each is an option
    dsn: Dsn,
    lake: Lake,
    tables: Annotated[
        list[str] | None,
        typer.Option("--tables", "--table", help="Tables to compare, as patterns: 'public.*'. Repeatable."),
    ] = None,
    keys: Annotated[int, typer.Option(help="How many differing keys to print for each table.", min=0)] = 20,
    append_only: AppendOnly = None,
    as_text: AsText = None,
    as_decimal: AsDecimal = None,
    generated_columns: GeneratedColumns = False,
    signal_table: SignalTable = None,
    readers: Annotated[int, typer.Option(help="How many connections read rows at once.", min=1)] = 16,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
    spark_master: SparkMaster = LOCAL,
    spark_conf: SparkConf = None,
    spark_ui: SparkUi = False,
) -> None:
    """Compare every row of a lake with its source, both as of one commit, and print the keys that differ.

    Works beside a running `sync` and beside writers: neither is held up, and what they do meanwhile is no difference.
    Without a running `sync`, the lake catches up first, as `sync --once` would do it. Reads each table once, as a
    copy does, and a large table that differs once more. Repair a table with `tailrace tables resync`.

    Exit code 0 when every table is equal, 1 when one differs or could not be compared, 2 for an error.

        tailrace verify postgresql://postgres@127.0.0.1:5432/shop ./lake --table 'public.order*'
    """
    with shown_errors():
        from tailrace.cli.verify import run_verify
        from tailrace.settings import VerifySettings
        from tailrace.source.kinds import source_of

        spark = spark_settings(spark_master, spark_conf, ui=spark_ui)
        settings = VerifySettings(lake, tuple(tables or ()), keys_max=keys, readers_max=readers, spark=spark)
        source = source_of(
            dsn, signal_table=signal_table, **_columns(append_only, choices(as_text, as_decimal), generated_columns)
        )
        run_verify(settings, source, as_json=json)


@app.command()
def maintain(
    lake: Lake,
    retain: Retain = "7d",
    retain_all: RetainAll = "1h",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Change nothing; print what would be deleted.")] = False,
    spark_master: SparkMaster = LOCAL,
    spark_conf: SparkConf = None,
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
        from tailrace.cli.maintain import run_maintain
        from tailrace.lake.retention import Retention

        seconds = parse_duration("--retain", retain), parse_duration("--retain-all", retain_all)
        spark = spark_settings(spark_master, spark_conf)
        run_maintain(lake, Retention(*seconds), PlainConsole(), dry_run=dry_run, spark=spark)


@app.command()
def doctor(  # noqa: PLR0913, PLR0917  each is an option
    dsn: Dsn,
    tables: Tables = None,
    exclude: Exclude = None,
    append_only: AppendOnly = None,
    as_text: AsText = None,
    as_decimal: AsDecimal = None,
    generated_columns: GeneratedColumns = False,
    signal_table: SignalTable = None,
    watermarks: Watermarks = Watermarking.READ_ONLY,
    slot: Slot = None,
    publication: Publication = None,
    two_phase: TwoPhase = False,
    origin: ChooseOrigin = Origin.ANY,
    failover_slot: FailoverSlot = False,
) -> None:
    """Check whether a database can be copied, and print the SQL that fixes what cannot.

    Exit code 1 when something must be fixed first.
    """
    with shown_errors():
        from tailrace.cli.doctor import render
        from tailrace.source.kinds import source_of

        names = {"slot": slot, "publication": publication, "signal_table": signal_table}
        columns = _columns(append_only, choices(as_text, as_decimal), generated_columns)
        source = source_of(dsn, **_stream(two_phase, origin, failover_slot), **names, **columns).watermarked(watermarks)
        checks = source.examine(tables or [], exclude or [])
        render(checks, PlainConsole())
        if any(check.ok is False for check in checks):
            raise typer.Exit(1)
