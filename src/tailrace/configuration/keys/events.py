"""Properties of what changes look like: columns, values, and the messages that Debezium makes of them."""

from __future__ import annotations

from tailrace.source.door.property import Importance, Type, grouped, ignored, refused

_MEDIUM = Importance.MEDIUM
_COLUMNS = "a copy has all columns as they are: choose or mask them in a view, or in the query that reads the lake"
_MESSAGES = "a lake has rows, not messages"
_QUEUE = "there is no queue: changes go to the log on disk"
_NO_SKIPPING = "nothing is ever skipped: what cannot be copied stops its table, with a reason"
_TOPICS = "there are no topics"
_METRICS = "metrics are our own"
_LINEAGE = "nothing is told to OpenLineage"

_COLUMN = (
    refused("column.include.list", "The columns that are copied.", _COLUMNS, Type.LIST),
    refused("column.exclude.list", "The columns that are left out.", _COLUMNS, Type.LIST),
    refused("column.mask.hash.*", "Columns whose values are replaced by a hash.", _COLUMNS, Type.LIST),
    refused("column.mask.with.*", "Columns whose values are replaced by asterisks.", _COLUMNS, Type.LIST),
    refused("column.truncate.to.*", "Columns whose values are cut.", _COLUMNS, Type.LIST),
    refused("converters", "Java classes that convert values.", "values are copied as they are"),
    refused("post.processors", "Java classes that change messages.", "rows are copied as they are"),
    refused(
        "decimal.handling.mode",
        "What `numeric` becomes.",
        "numbers are exact, or text where a decimal cannot hold them: give precise, or leave it out",
        harmless=("precise",),
    ),
    refused(
        "time.precision.mode",
        "What dates and times become.",
        "they are dates and timestamps to the microsecond: leave it out",
        harmless=("adaptive", "adaptive_time_microseconds", "microseconds"),
    ),
    refused(
        "binary.handling.mode",
        "What `bytea` becomes.",
        "it is binary: give bytes, or leave it out",
        harmless=("bytes",),
    ),
    refused(
        "include.unknown.datatypes",
        "Whether columns of types that Debezium does not know are there.",
        "columns of all types are copied: give true, or leave it out",
        Type.BOOLEAN,
        harmless=("true",),
    ),
    refused(
        "field.name.adjustment.mode",
        "How names of columns are changed.",
        "columns keep their names: give none, or leave it out",
        harmless=("none",),
    ),
    ignored("unavailable.value.placeholder", "What stands for a large value that was not sent.", "the value stays"),
    ignored("column.propagate.source.type", "Columns whose source type is told.", _MESSAGES, Type.LIST),
    ignored("datatype.propagate.source.type", "Types that are told.", _MESSAGES, Type.LIST),
    ignored(
        "include.schema.comments",
        "Whether comments are told.",
        "they are not copied",
        Type.BOOLEAN,
        harmless=("false",),
    ),
    ignored("schema.refresh.mode", "When a table's shape is read again.", "every change of a shape is followed"),
)

_CHANGES = (
    refused(
        "skipped.operations",
        "Kinds of changes that are left out.",
        "a copy without them would not be exact: give none, or leave it out",
        Type.LIST,
        harmless=("none",),
        default="none",
    ),
    refused(
        "event.processing.failure.handling.mode",
        "What happens to a change that cannot be read.",
        f"{_NO_SKIPPING}: give fail, or leave it out",
        harmless=("fail",),
    ),
    refused(
        "event.converting.failure.handling.mode",
        "What happens to a value that cannot be converted.",
        f"{_NO_SKIPPING}: give fail, or leave it out",
        harmless=("fail",),
    ),
    ignored("tombstones.on.delete", "Whether a delete is told twice.", _MESSAGES, Type.BOOLEAN),
    ignored(
        "skip.messages.without.change",
        "Whether an update that changes no chosen column is left out.",
        "all columns are copied",
        Type.BOOLEAN,
        harmless=("false",),
    ),
    ignored(
        "provide.transaction.metadata",
        "Whether begin and end of transactions are told.",
        "every cut is whole transactions, and the log has them",
        Type.BOOLEAN,
        harmless=("false",),
    ),
    ignored("transaction.metadata.factory", "The class for it.", _MESSAGES, Type.CLASS),
    ignored("sourceinfo.struct.maker", "The class that tells where a change comes from.", _MESSAGES, Type.CLASS),
    ignored("include.schema.changes", "Whether changes of shapes are told.", _MESSAGES, Type.BOOLEAN),
    ignored("extended.headers.enabled", "Whether messages have more headers.", _MESSAGES, Type.BOOLEAN),
    ignored("schema.name.adjustment.mode", "How names of message schemas are changed.", _MESSAGES, harmless=("none",)),
)

_RUNNING = (
    ignored("heartbeat.topics.prefix", "The topic for it.", _TOPICS),
    ignored(
        "errors.max.retries",
        "How often a connection is tried again.",
        "once it streams, it is tried until you stop it",
        Type.INT,
    ),
    ignored(
        "retriable.restart.connector.wait.ms", "How long to wait before.", "pauses grow from half a second", Type.LONG
    ),
    ignored("max.batch.size", "How many changes a batch has.", _QUEUE, Type.INT),
    ignored("max.queue.size", "How many changes wait in memory.", _QUEUE, Type.INT),
    ignored("max.queue.size.in.bytes", "How many bytes wait in memory.", _QUEUE, Type.LONG),
    ignored("queue.provider.type", "Where they wait.", _QUEUE),
    ignored("poll.interval.ms", "How often the queue is looked at.", _QUEUE, Type.LONG),
    ignored("executor.shutdown.timeout.ms", "How long a stop may take.", "a stop ends the batch in hand", Type.LONG),
    ignored("memory.management.schemas.class", "Where shapes are kept.", "they are in the log", Type.CLASS),
    ignored("memory.management.tables.class", "Where shapes are kept.", "they are in the log", Type.CLASS),
    ignored("custom.metric.tags", "Tags for metrics.", _METRICS, Type.LIST),
    ignored("statistics.metrics.enabled", "Whether statistics are measured.", _METRICS, Type.BOOLEAN),
    refused(
        "custom.sanitize.pattern",
        "Keys whose values are masked.",
        "passwords, and what looks like one, are masked always: give other secrets as ${env:NAME}",
    ),
    ignored("openlineage.integration.*", "What is told to OpenLineage.", _LINEAGE),
    ignored("internal.*", "For Debezium's own developers.", "it is about Debezium's own code"),
)

EVENTS = (
    *grouped("Columns and values", _COLUMN),
    *grouped("Changes", _CHANGES),
    *grouped("Running", _RUNNING),
)
