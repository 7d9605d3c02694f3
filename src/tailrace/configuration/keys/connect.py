"""Properties of Kafka Connect, of its topics, and names that Debezium has given up."""

from __future__ import annotations

from tailrace.source.door.property import Type, grouped, ignored, refused, renamed

_TOPICS = "there are no topics"
_CONVERTERS = "a lake has typed columns: nothing is serialised"
_POSITIONS = "positions are in the lake"
_EXACT = "a copy is exact without it"
_RETRIES = "what may go away by itself is tried until you stop it"

_CONNECT = (
    ignored("tasks.max", "How many tasks there may be.", "a connector is one task", Type.INT, harmless=("1",)),
    ignored("tasks.max.enforce", "Whether more are an error.", "a connector is one task", Type.BOOLEAN),
    ignored("connector.plugin.version", "Which version of the connector runs.", "there is one: ours"),
    ignored("config.action.reload", "Restart when a secret changes.", "secrets are read at each start"),
    refused(
        "transforms",
        "Classes that change each message.",
        "rows are copied as they are: there is nothing to unwrap, and a query can do the rest; leave it out",
        Type.LIST,
    ),
    ignored("transforms.*", "Belongs to `transforms`.", "it counts with transforms only, which are refused"),
    ignored(
        "predicates", "Conditions for transforms.", "they count with transforms only, which are refused", Type.LIST
    ),
    ignored("predicates.*", "Belongs to `predicates`.", "they count with transforms only, which are refused"),
    ignored("key.converter", "How keys are serialised.", _CONVERTERS, Type.CLASS),
    ignored("key.converter.*", "Belongs to `key.converter`.", _CONVERTERS),
    ignored("value.converter", "How rows are serialised.", _CONVERTERS, Type.CLASS),
    ignored("value.converter.*", "Belongs to `value.converter`.", _CONVERTERS),
    ignored("header.converter", "How headers are serialised.", _CONVERTERS, Type.CLASS),
    ignored("header.converter.*", "Belongs to `header.converter`.", _CONVERTERS),
    refused(
        "errors.tolerance",
        "Whether errors are passed over.",
        "nothing is ever skipped: give none, or leave it out",
        harmless=("none",),
    ),
    ignored("errors.retry.timeout", "How long to try again.", _RETRIES, Type.LONG),
    ignored("errors.retry.delay.max.ms", "How long to wait between two tries.", _RETRIES, Type.LONG),
    ignored("errors.log.enable", "Whether errors are logged.", "they always are", Type.BOOLEAN, harmless=("true",)),
    ignored("errors.log.include.messages", "Whether messages are logged too.", "they never are", Type.BOOLEAN),
    ignored("exactly.once.support", "Whether it is exact.", _EXACT, harmless=("requested", "required")),
    ignored("transaction.boundary", "What Kafka's transactions hold.", _EXACT),
    ignored("transaction.boundary.interval.ms", "How long they are.", _EXACT, Type.LONG),
    ignored("offsets.storage.topic", "The topic of positions.", _POSITIONS),
    ignored("offset.storage", "Where Debezium's engine keeps positions.", _POSITIONS, Type.CLASS),
    ignored("offset.storage.*", "Belongs to `offset.storage`.", _POSITIONS),
    ignored("offset.flush.*", "How often they are stored.", _POSITIONS),
    ignored("schema.history.internal", "Where shapes are kept.", "they are in the log", Type.CLASS),
    ignored("schema.history.internal.*", "Belongs to `schema.history.internal`.", "they are in the log"),
)

_TOPIC = (
    ignored("topic.naming.strategy", "How topics are named.", _TOPICS, Type.CLASS),
    ignored("topic.delimiter", "What stands between the parts of a topic's name.", _TOPICS),
    ignored("topic.cache.size", "How many names of topics are kept in memory.", _TOPICS, Type.INT),
    ignored("topic.heartbeat.name", "The topic of heartbeats.", _TOPICS),
    ignored("topic.heartbeat.prefix", "The topic of heartbeats.", _TOPICS),
    ignored("topic.transaction", "The topic of transactions.", _TOPICS),
    ignored("topic.regex", "Which topics are joined.", _TOPICS),
    ignored("topic.replacement", "What they are joined to.", _TOPICS),
    ignored("topic.key.*", "How keys of joined topics stay apart.", _TOPICS),
    ignored("topic.creation.*", "How topics are made.", _TOPICS),
    ignored("producer.override.*", "Options of the producer.", _TOPICS),
    ignored("consumer.override.*", "Options of the consumer.", _TOPICS),
    ignored("admin.override.*", "Options of the admin client.", _TOPICS),
)

_RENAMED = {
    "database.server.name": "topic.prefix",
    "table.whitelist": "table.include.list",
    "table.blacklist": "table.exclude.list",
    "schema.whitelist": "schema.include.list",
    "schema.blacklist": "schema.exclude.list",
    "column.whitelist": "column.include.list",
    "column.blacklist": "column.exclude.list",
}
"""Of Debezium 1."""

CONNECT = (
    *grouped("Kafka Connect", _CONNECT),
    *grouped("Topics", _TOPIC),
    *grouped("Names of Debezium 1", tuple(renamed(old, new) for old, new in _RENAMED.items())),
)
