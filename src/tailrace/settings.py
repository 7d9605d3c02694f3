"""What a user can set, with the defaults."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tailrace.model.backoff import Backoff
from tailrace.model.lake_address import LakeAddress


@dataclass(frozen=True)
class SparkSettings:
    """Where Spark works: in this process's own JVM, or on a cluster."""

    master: str = "local[*]"
    """`local[*]`, or a cluster as Spark names it: `spark://host:7077`."""
    conf: tuple[tuple[str, str], ...] = ()
    """Spark's own settings, each instead of ours."""
    ui: bool = False
    """Whether Spark shows its own page, on loopback."""


LOCAL_SPARK = SparkSettings()


@dataclass(frozen=True)
class TaskSizes:
    """How much one task of the engine takes. Its memory follows from these, and so does how work is divided."""

    read_bytes: int = 16 << 20
    """Of the log that one task decodes before its changes are dealt out."""
    fold_bytes: int = 48 << 20
    """Of the log whose changes one task compacts."""
    decoded_bytes_max: int = 160 << 20
    """Of changes, decoded, that one task holds."""
    window_bytes: int = 48 << 20
    """Of rows that are read by a window, as they are in memory: in one chunk, about, and in one piece that is
    reconciled, however large the chunk turns out."""
    portion_bytes: int = 8 << 20
    """Chunks of a window that are smaller than this together are reconciled in one piece, and become one file."""
    windows_rows_min: int = 20_000_000
    windows_bytes_min: int = 8 << 30
    """A table that is thought to have more rows than this, or to be larger, is never copied at once."""
    window_tables_max: int = 64
    """Of which one window has rows."""
    window_seconds: float = 2.0
    """How long a window holds a state of the source, about."""
    window_growth_max: float = 4.0
    """How many times as large as the last window the next one is at most: the machine may be slower by now."""
    compare_bytes: int = 64 << 20
    """Of a table's rows, as its source says, that one task compares."""


MINUTE, HALF_MINUTE = Backoff(1.0, 60.0), Backoff(1.0, 30.0)
"""From one second to as long as the name says."""


@dataclass(frozen=True)
class Retries:
    """How long a run waits before it tries a table again that failed for a passing reason."""

    publish: Backoff = MINUTE
    """Of a table whose changes could not be published."""
    window: Backoff = HALF_MINUTE
    """Of a growing table whose next rows could not be read."""
    patience_seconds: float = 60.0
    """How long a run that is to end by itself bears with one trouble, and how long cuts wait for a table."""
    restamp_seconds: float = 60.0
    """How old the stamp of a growing table may get that waits for its next rows: the log keeps what comes after it."""


class SnapshotMode(StrEnum):
    """How tables get the rows that they have already. Debezium's names."""

    INITIAL = "initial"
    """All at once when the lake begins; later, and where a table is very large, by windows."""
    INITIAL_ONLY = "initial_only"
    """The same, and end when all have been copied."""
    INCREMENTAL = "incremental"
    """By windows, from the beginning."""
    NEVER = "never"
    """Not at all: what happens from now on is all that a table has."""
    WHEN_NEEDED = "when_needed"
    """As `initial`; and if the source has lost changes that we had not read, by windows once more."""


class Watermarking(StrEnum):
    """What a window writes to the source's signal table before and after its rows are read. Debezium's names."""

    READ_ONLY = "read_only"
    """Nothing."""
    INSERT_INSERT = "insert_insert"
    """A row that opens it, and one that closes it."""
    INSERT_DELETE = "insert_delete"
    """A row that opens it, which is deleted when it closes."""


class Confirm(StrEnum):
    """When the source is told that it may forget changes."""

    DISK = "disk"
    """When they are in the log, on this machine's disk."""
    LAKE = "lake"
    """When a published cut has them. The home may then be lost."""


@dataclass(frozen=True)
class ConnectorSettings:
    """One connector: into which lake, and how. The source has settings of its own."""

    lake: LakeAddress
    tables: tuple[str, ...] = ()
    """Patterns such as `public.*`; all tables when empty."""
    exclude: tuple[str, ...] = ()
    format: str = "delta"
    once: bool = False
    """Catch up to now, publish, and end."""
    publish_every_seconds: float = 1.0
    """At least so long from one publish to the next; longer where they are dear."""
    batch_bytes_max: int = 160 << 20
    """About how much of the log one batch publishes; at least one transaction."""
    chunk_bytes_max: int = 32 << 20
    snapshot_mode: SnapshotMode = SnapshotMode.INITIAL
    window_rows: int | None = None
    """How many rows a chunk of a window has; by default as many as make a window take a few seconds."""
    confirm: Confirm | None = None
    """By default, `lake` for a lake in a bucket and `disk` for one in a folder."""
    log_keep_seconds: float = 24 * 3600.0
    """How long changes stay readable in the log after they have been published."""
    retain_seconds: float = 7 * 24 * 3600.0
    """How long published cuts stay readable; the older, the fewer of them."""
    retain_all_seconds: float = 3600.0
    """How long every published cut stays readable."""
    log_quota_bytes: int | None = None
    """How much disk the log may take; at this, nothing more is taken from the source until there is room."""
    log_compression: str | None = None
    """`lz4` or `zstd`."""
    log_segment_bytes_max: int = 256 << 20
    tables_in_parallel: int = 2
    readers_max: int = 16
    """How many connections read rows at once while tables are copied. Two or three more are there for other things."""
    look_at_tables_seconds: float = 10.0
    """How often the source is asked which tables there are."""
    signal_table: str | None = None
    """A table of the source, by its whole name: rows that are inserted there are signals. The source has it too."""
    signal_file: Path | None = None
    """A file of JSON lines that are signals."""
    watermarking: Watermarking = Watermarking.READ_ONLY
    """What copies by windows write to the signal table."""
    is_guest: bool = False
    """The run is not the lake's own, and does not know all that its own are told: what those have sent stays sent, and
    signals of the source stay in the log for them."""
    spark: SparkSettings = LOCAL_SPARK
    sizes: TaskSizes = TaskSizes()
    retries: Retries = Retries()

    @property
    def confirms_cuts(self) -> bool:
        """Whether the source is told only of what a published cut has."""
        return (self.confirm or (Confirm.DISK if isinstance(self.lake, Path) else Confirm.LAKE)) is Confirm.LAKE


@dataclass(frozen=True)
class VerifySettings:
    """One verification: which lake it verifies, and how."""

    lake: LakeAddress
    tables: tuple[str, ...] = ()
    """Patterns such as `public.*`; all tables when empty."""
    keys_max: int = 20
    """How many differing keys are named for each table."""
    readers_max: int = 16
    """How many connections read rows at once."""
    spark: SparkSettings = LOCAL_SPARK
    sizes: TaskSizes = TaskSizes()
    is_watching: bool = False
    """Wait for the sync that runs, and never run one instead: another one is about to start."""
