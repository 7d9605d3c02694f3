"""What options and arguments commands share, and how a person writes them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tailrace.settings import SnapshotMode, Watermarking

LOCAL = "local[*]"


class Compression(StrEnum):
    """How the log's batches may be compressed."""

    LZ4 = "lz4"
    ZSTD = "zstd"


class Origin(StrEnum):
    """Whose changes are sent: everyone's, or those alone that were made at the source itself."""

    ANY = "any"
    NONE = "none"


Dsn = Annotated[str, typer.Argument(metavar="DSN", help="The database: postgresql://user:password@host:5432/database")]
Lake = Annotated[Path, typer.Argument(metavar="LAKE", help="The lake's folder.")]
Tables = Annotated[
    list[str] | None,
    typer.Option("--tables", metavar="PATTERN", help="Tables to copy: 'public.*', orders. Repeatable. Default: all."),
]
SparkMaster = Annotated[
    str, typer.Option(metavar="URL", help="Where Spark works: local[*], or a cluster, spark://host:7077.")
]
SparkConf = Annotated[
    list[str] | None, typer.Option(metavar="KEY=VALUE", help="A setting of Spark's, instead of ours. Repeatable.")
]
SparkUi = Annotated[
    bool, typer.Option("--spark-ui", help="Show Spark's own page of jobs and tasks, on this machine alone.")
]
Retain = Annotated[
    str, typer.Option(metavar="TIME", help="How long published cuts stay readable, fewer of them with age: 7d, 12h.")
]
RetainAll = Annotated[str, typer.Option(metavar="TIME", help="How long every published cut stays readable: 1h, 30min.")]
AppendOnly = Annotated[
    list[str] | None,
    typer.Option(
        "--append-only",
        metavar="PATTERN",
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
        help="How existing rows are copied. initial: all at once when a lake begins; initial_only: and then end; "
        "incremental: a little at a time; never: not at all; when_needed: also again after changes were lost."
    ),
]
ChunkRows = Annotated[
    int | None,
    typer.Option(
        metavar="N", help="Rows a table is copied by at a time. Default: as many as take a few seconds.", min=1
    ),
]
PublishEvery = Annotated[
    float,
    typer.Option(metavar="SECONDS", help="Minimum seconds between publishes; longer when they are expensive.", min=0.1),
]
Slot = Annotated[str | None, typer.Option(metavar="NAME", help="Use this replication slot; created if missing.")]
Publication = Annotated[str | None, typer.Option(metavar="NAME", help="Use this existing publication.")]
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
    typer.Option(metavar="SIZE", help="Disk limit of the log, for example 20GB; at least 64MB. Default: no limit."),
]
LogCompression = Annotated[
    Compression | None, typer.Option(help="Compress the log; it costs processor time. Default: no.")
]
LogSegment = Annotated[str, typer.Option(metavar="SIZE", help="The size of a file of the log; at least 1MB.")]
Exclude = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="PATTERN", help="Tables to leave out, as patterns. Repeatable."),
]


class EngineName(StrEnum):
    """Who answers a query."""

    DUCKDB = "duckdb"
    SPARK = "spark"
