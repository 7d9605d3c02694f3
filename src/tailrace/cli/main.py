"""The command line: `tailrace sync | run | serve | query | verify | maintain | tables | signal | offsets | …`.

Exit codes: 0 done, 1 a check found something or a table is in error, 2 an error with a hint, 130 interrupted.
"""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from tailrace.cli import log as log_commands
from tailrace.cli import offsets as offset_commands
from tailrace.cli import serve as serve_commands
from tailrace.cli import signals as signal_commands
from tailrace.cli import sql as sql_commands
from tailrace.cli import tables as table_commands
from tailrace.cli.columns import choices
from tailrace.cli.errors import shown_errors
from tailrace.cli.run import run as run_command
from tailrace.cli.run import run_connector
from tailrace.cli.spark import spark_settings
from tailrace.configuration.quantities import (
    LOG_QUOTA_BYTES_MIN,
    LOG_SEGMENT_BYTES_MIN,
    parse_duration,
    parse_size,
)
from tailrace.settings import ConnectorSettings, SnapshotMode, Watermarking

app = typer.Typer(
    help="Copy a live Postgres database into a data lake and keep the copy exact.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
app.command()(run_command)
app.add_typer(table_commands.app, name="tables")
app.add_typer(log_commands.app, name="log")
app.command()(serve_commands.serve)
app.add_typer(offset_commands.app, name="offsets")
app.command()(signal_commands.signal)
app.command()(signal_commands.signals)
app.command()(sql_commands.sql)

LOCAL = "local[*]"


class Compression(StrEnum):
    """How the log's batches may be compressed."""

    LZ4 = "lz4"
    ZSTD = "zstd"


class Origin(StrEnum):
    """Whose changes are sent: everyone's, or those alone that were made at the source itself."""

    ANY = "any"
    NONE = "none"


Dsn = Annotated[str, typer.Argument(help="The database: postgresql://user:password@host:5432/database")]
Lake = Annotated[Path, typer.Argument(help="The lake's folder.")]
Tables = Annotated[
    list[str] | None,
    typer.Option("--tables", help="Tables to copy, as patterns: 'public.*'. Repeatable. Default: all."),
]
SparkMaster = Annotated[
    str, typer.Option(metavar="URL", help="Where Spark works: local[*], or a cluster, spark://host:7077.")
]
SparkConf = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE", help="A setting of Spark's, instead of ours. Repeatable.")
]
Retain = Annotated[
    str, typer.Option(metavar="TIME", help="How long published cuts stay readable, fewer of them with age: 7d, 12h.")
]
RetainAll = Annotated[str, typer.Option(metavar="TIME", help="How long every published cut stays readable: 1h, 30min.")]
AppendOnly = Annotated[
    list[str] | None,
    typer.Option(
        "--append-only",
        help="Tables without key and replica identity whose rows are only added, as patterns. Repeatable.",
    ),
]
AsText = Annotated[
    list[str] | None,
    typer.Option(
        "--as-text", metavar="PATTERN", help="Columns to copy as text: public.orders.placed_at, *.seats. Repeatable."
    ),
]
AsDecimal = Annotated[
    list[str] | None,
    typer.Option(metavar="PATTERN=P,S", help="Numerics without precision to copy as decimal(P,S). Repeatable."),
]
GeneratedColumns = Annotated[
    bool, typer.Option("--generated-columns", help="Copy generated columns that are stored, too. Needs Postgres 18.")
]
SignalTable = Annotated[
    str | None,
    typer.Option(metavar="TABLE", help="Rows that are inserted into this table of the database are signals."),
]
SignalFile = Annotated[
    Path | None, typer.Option(metavar="PATH", help="Lines that are appended to this file are signals.")
]
Watermarks = Annotated[
    Watermarking,
    typer.Option(help="What copies by windows write to the signal table before and after each window."),
]
ChooseMode = Annotated[
    SnapshotMode,
    typer.Option(
        help="How tables get the rows that they have: at once or by windows, once, never, or also after a gap."
    ),
]
ChunkRows = Annotated[
    int | None,
    typer.Option(help="How many rows a chunk of a window has. Default: so many that a window takes seconds.", min=1),
]
PublishEvery = Annotated[
    float, typer.Option(help="Seconds between two publishes at least; more where they are dear.", min=0.1)
]
Slot = Annotated[str | None, typer.Option(help="Use this replication slot; it is created if it is not there.")]
Publication = Annotated[str | None, typer.Option(help="Use this existing publication.")]
TwoPhase = Annotated[
    bool, typer.Option("--two-phase", help="Log prepared transactions when they are prepared. Needs Postgres 15.")
]
FailoverSlot = Annotated[
    bool, typer.Option("--failover-slot", help="Make a slot that standbys keep too. Needs Postgres 17.")
]
ChooseOrigin = Annotated[
    Origin, typer.Option(help="none: leave out what the source received by replication itself. Needs Postgres 16.")
]
LogQuota = Annotated[
    str | None,
    typer.Option(
        metavar="SIZE", help="How much disk the log may take, as 20GB; at least 64MB. Default: what there is."
    ),
]
LogCompression = Annotated[
    Compression | None, typer.Option(help="Compress the log; it costs processor time. Default: no.")
]
LogSegment = Annotated[str, typer.Option(metavar="SIZE", help="The size of a file of the log; at least 1MB.")]
Exclude = Annotated[list[str] | None, typer.Option("--exclude", help="Tables to leave out, as patterns. Repeatable.")]


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
    retain: Retain = "7d",
    retain_all: RetainAll = "1h",
    signal_table: SignalTable = None,
    signal_file: SignalFile = None,
    watermarks: Watermarks = Watermarking.READ_ONLY,
    snapshot_mode: ChooseMode = SnapshotMode.INITIAL,
    chunk_rows: ChunkRows = None,
) -> None:
    """Copy a database into a lake and keep the copy exact.

    The first run copies every table as of one commit, later ones continue. With a table in error the exit code is 1.
    """
    with shown_errors():
        from tailrace.connector.connector import Connector
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
            spark=spark_settings(spark_master, spark_conf),
            signal_table=signal_table,
            signal_file=signal_file,
            watermarking=watermarks,
            **_retention(retain, retain_all),
        )
        names: dict[str, Any] = {"slot": slot, "publication": publication, "signal_table": signal_table}
        names |= _columns(append_only, choices(as_text, as_decimal), generated_columns)
        names |= _stream(two_phase, origin, failover_slot)
        run_connector(Connector(settings, source_of(dsn, **names)), lake)


def _stream(two_phase: bool, origin: Origin, failover: bool) -> dict[str, Any]:
    return {"stream": {"two_phase": two_phase, "origin": str(origin), "failover": failover}}


def _columns(append_only: list[str] | None, chosen: list[str], generated: bool) -> dict[str, Any]:
    return {"append_only": append_only or [], "as_text": chosen, "generated": generated}


def _retention(retain: str, retain_all: str) -> dict[str, Any]:
    lengths = ("retain_seconds", "--retain", retain), ("retain_all_seconds", "--retain-all", retain_all)
    return {name: parse_duration(option, given) for name, option, given in lengths}


class EngineName(StrEnum):
    """Who answers a query."""

    DUCKDB = "duckdb"
    SPARK = "spark"


@app.command()
def query(  # noqa: PLR0913, PLR0917  each is an option
    lake: Lake,
    sql: Annotated[str, typer.Argument(help="SQL of the engine; tables are named as in the source.")],
    published: Annotated[
        bool, typer.Option("--published", help="The last published cut, not the newest commit.")
    ] = False,
    as_of: Annotated[str | None, typer.Option(help="The state as of a position (0/16B3748) or a time, UTC.")] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Ask again at every new cut, until Ctrl-C.")] = False,
    engine: Annotated[
        EngineName, typer.Option(help="Who answers: DuckDB at once, or Spark, which takes its time to start.")
    ] = EngineName.DUCKDB,
    json: Annotated[bool, typer.Option("--json", help="One JSON object a row.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Comma-separated values with a header.")] = False,
    spark_master: SparkMaster = LOCAL,
    spark_conf: SparkConf = None,
) -> None:
    """Run SQL over all tables of one cut.

    Every table shows the same commit of the source: the newest in the log by default, about a second old while
    `tailrace sync` runs.
    """
    with shown_errors():
        from tailrace.cli.query import Format, Query, run_query

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

        spark = spark_settings(spark_master, spark_conf)
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
        run_maintain(lake, Retention(*seconds), Console(emoji=False), dry_run=dry_run)


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
        render(checks, Console(emoji=False))
        if any(check.ok is False for check in checks):
            raise typer.Exit(1)


@app.command()
def drop(
    dsn: Dsn,
    lake: Lake,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Remove the slot and the publication that `sync` made in the database.

    The lake's tables stay, but they can no longer be brought up to date. Only what Tailrace created is removed.
    """
    with shown_errors():
        from tailrace.connector.drop import drop_source
        from tailrace.source.kinds import source_of

        if not yes and sys.stdin.isatty():
            typer.confirm("The lake cannot be brought up to date afterwards. Continue?", abort=True)
        for line in drop_source(source_of(dsn), lake):
            Console(emoji=False).print(line, highlight=False)


def main() -> None:
    """Entry point."""
    app()


if __name__ == "__main__":
    main()
