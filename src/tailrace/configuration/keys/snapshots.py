"""Properties of snapshots, of signals, and of what is told about them."""

from __future__ import annotations

from tailrace.settings import Watermarking
from tailrace.source.door.property import Importance, Type, grouped, ignored, refused, supported

SNAPSHOT_MODES = ("initial", "initial_only", "incremental", "no_data", "never", "when_needed")
CHANNELS = ("source", "file", "jmx", "in-process")

_MEDIUM = Importance.MEDIUM
_SNAPSHOTTER = "there are no snapshotters of your own: choose another snapshot.mode"
_QUERIES = "we choose how rows are read"
_NO_LOCKS = "no table is locked"
_NO_KAFKA = "signals come from signal.file, signal.data.collection, the command line and the server"
_JOURNAL = "notifications are in _tailrace/notifications.jsonl of the lake"

_SNAPSHOTS = (
    supported(
        "snapshot.mode",
        "How tables get the rows that they have: `initial`, `initial_only` (then end), `when_needed` (also after a "
        "gap), `no_data` or `never`, and ours, `incremental`: [by windows](cli.md#copies-by-windows) from the start.",
        values=SNAPSHOT_MODES,
        default="initial",
        refused_values={
            "always": "a lake keeps its rows, so no start needs another copy: use initial, or when_needed",
            "configuration_based": _SNAPSHOTTER,
            "custom": _SNAPSHOTTER,
        },
        importance=_MEDIUM,
    ),
    supported(
        "snapshot.max.threads",
        "How many connections read rows at once; the same as `readers.max`.",
        Type.INT,
        minimum=1,
        importance=_MEDIUM,
    ),
    supported(
        "incremental.snapshot.chunk.size",
        "How many rows each chunk of a window has. By default, as many as make a window take two seconds.",
        Type.INT,
        minimum=1,
        importance=_MEDIUM,
    ),
    refused(
        "snapshot.include.collection.list",
        "The tables whose existing rows are copied, of those that are followed.",
        "every table that is followed is copied: two connectors with two lakes can have two values of snapshot.mode",
        Type.LIST,
    ),
    refused(
        "snapshot.select.statement.overrides",
        "Tables whose copies have only the rows of a query.",
        "a copy has all rows, or it would not be exact: choose the rows when you read the lake",
    ),
    refused(
        "snapshot.select.statement.overrides.*",
        "The query for one table.",
        "a copy has all rows, or it would not be exact: choose the rows when you read the lake",
    ),
    refused(
        "snapshot.query.mode",
        "Who writes the queries of a snapshot.",
        "the queries are ours: give select_all, or leave it out",
        harmless=("select_all",),
    ),
    ignored("snapshot.query.mode.custom.name", "The class for it.", "it counts with snapshot.query.mode=custom only"),
    ignored("snapshot.mode.custom.name", "The class for `snapshot.mode=custom`.", "that mode is refused"),
    ignored(
        "snapshot.mode.configuration.based.*", "What `snapshot.mode=configuration_based` does.", "that mode is refused"
    ),
    ignored(
        "snapshot.isolation.mode",
        "The isolation of a snapshot's transactions.",
        "all tables are read under one state of the database",
        harmless=("repeatable_read", "serializable"),
    ),
    ignored("snapshot.locking.mode", "Whether tables are locked for a snapshot.", _NO_LOCKS, harmless=("none",)),
    ignored("snapshot.locking.mode.custom.name", "The class for `snapshot.locking.mode=custom`.", _NO_LOCKS),
    ignored("snapshot.lock.timeout.ms", "How long to wait for locks.", _NO_LOCKS, Type.LONG),
    ignored(
        "snapshot.delay.ms", "How long to wait before a snapshot.", "it begins at once", Type.LONG, harmless=("0",)
    ),
    ignored(
        "streaming.delay.ms",
        "How long to wait after a snapshot.",
        "changes are taken from the beginning on, beside the snapshot",
        Type.LONG,
        harmless=("0",),
    ),
    ignored("snapshot.fetch.size", "How many rows are fetched at once.", _QUERIES, Type.INT),
    ignored("query.fetch.size", "How many rows are fetched at once.", _QUERIES, Type.INT),
    ignored("snapshot.max.threads.multiplier", "How many chunks a table has for each thread.", _QUERIES, Type.INT),
    ignored("legacy.snapshot.max.threads", "Read each table with one thread.", _QUERIES, Type.BOOLEAN),
    ignored(
        "snapshot.tables.order.by.row.count",
        "Which tables are copied first.",
        "large and small tables are copied side by side",
        harmless=("disabled",),
    ),
    supported(
        "incremental.snapshot.watermarking.strategy",
        "What a window writes to `signal.data.collection`. Windows are exact without it, so by default nothing.",
        values=tuple(Watermarking),
        default=Watermarking.READ_ONLY,
    ),
    ignored(
        "incremental.snapshot.allow.schema.changes",
        "Whether a table's shape may change during an incremental snapshot.",
        "it may",
        Type.BOOLEAN,
        harmless=("true",),
    ),
    supported(
        "read.only",
        "With `true`, nothing is written to the source, whatever the strategy of watermarks.",
        Type.BOOLEAN,
        values=("true", "false"),
    ),
)

_SIGNALS = (
    supported(
        "signal.data.collection",
        "Rows that are inserted into this table of the source, `schema.table`, are [signals](signals.md).",
        importance=_MEDIUM,
    ),
    supported("signal.file", "Lines that are appended to this file are [signals](signals.md).", importance=_MEDIUM),
    supported(
        "signal.enabled.channels",
        "`source`, for `signal.data.collection`, and `file`, for `signal.file`. Default: those that are set up. The "
        "command line and the server always work.",
        Type.LIST,
        values=CHANNELS,
        refused_values={"kafka": _NO_KAFKA},
        importance=_MEDIUM,
    ),
    ignored("signal.poll.interval.ms", "How often channels are looked at.", "signals are taken up at once", Type.LONG),
    ignored("signal.kafka.*", "Where the topic of signals is.", _NO_KAFKA),
    ignored("signal.consumer.*", "Options of the consumer of signals.", _NO_KAFKA),
    ignored("notification.enabled.channels", "Where notifications go to.", _JOURNAL, Type.LIST),
    ignored("notification.sink.topic.name", "The topic of notifications.", _JOURNAL),
)

SNAPSHOTS = (*grouped("Snapshots", _SNAPSHOTS), *grouped("Signals and notifications", _SIGNALS))
