"""Debezium's properties for Postgres that mean something, or nothing, with Postgres alone, and ours."""

from __future__ import annotations

from tailrace.source.door.property import Importance, Type, grouped, ignored, refused, renamed, supported

CLASSES = "io.debezium.connector.postgresql.PostgresConnector", "tailrace.postgresql"
SSL_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")
PUBLICATION_MODES = ("all_tables", "disabled", "filtered")

_HIGH, _MEDIUM = Importance.HIGH, Importance.MEDIUM
_OWN_TEXT = "it is Postgres's own text: leave it out"

_CONNECTION = (
    supported("database.hostname", "Where the server is: a name, an address, or a socket's folder.", importance=_HIGH),
    supported("database.port", "The server's port.", Type.INT, default="5432", minimum=1, importance=_HIGH),
    supported("database.user", "Who connects; needs the right to replicate.", importance=_HIGH),
    supported("database.password", "The user's password.", Type.PASSWORD, importance=_HIGH),
    supported("database.dbname", "The database that is copied.", importance=_HIGH),
    supported(
        "database.dsn",
        "The whole connection string, as libpq reads it, in place of the properties above and of `database.ssl…`.",
        Type.PASSWORD,
        importance=_HIGH,
    ),
    supported(
        "database.sslmode",
        "Whether the connection is encrypted, and what is checked of the server.",
        values=SSL_MODES,
        default="prefer",
        importance=_MEDIUM,
    ),
    supported("database.sslcert", "File with the client's certificate, PEM.", importance=_MEDIUM),
    supported("database.sslkey", "File with the client's key, PEM.", importance=_MEDIUM),
    supported("database.sslpassword", "The password of the client's key.", Type.PASSWORD, importance=_MEDIUM),
    supported("database.sslrootcert", "File with the certificates that the server's is checked by, PEM."),
    refused(
        "database.sslfactory",
        "A Java class that makes encrypted connections.",
        "there is no Java in the connection: use database.sslmode and database.sslrootcert",
    ),
    ignored(
        "database.tcpKeepAlive",
        "Whether idle connections are probed.",
        "they always are",
        Type.BOOLEAN,
        harmless=("true",),
    ),
    ignored("database.query.timeout.ms", "How long a query may take.", "a copy takes as long as it needs", Type.INT),
    ignored("connection.validation.timeout.ms", "How long the first connection may take.", "it may take 10 s"),
    refused(
        "database.initial.statements",
        "SQL that is run on each new connection.",
        "no SQL of yours is run: `alter role … set …` sets the same for the user",
    ),
    ignored("driver.*", "Options of the JDBC driver.", "there is no JDBC: libpq's options go into database.dsn"),
)

_STREAM = (
    supported(
        "plugin.name",
        "Which plugin of the server decodes the WAL.",
        values=("pgoutput",),
        default="pgoutput",
        refused_values={"decoderbufs": "only pgoutput is read, which every server has: leave plugin.name out"},
        importance=_MEDIUM,
    ),
    supported(
        "slot.name",
        "Use this replication slot; it is made if it is not there. Default: one of our own.",
        importance=_MEDIUM,
    ),
    refused(
        "slot.drop.on.stop",
        "Drop the slot when the connector stops.",
        "changes would be lost between a stop and a start: `tailrace drop` removes the slot for good",
        Type.BOOLEAN,
        harmless=("false",),
    ),
    supported(
        "slot.failover",
        "Make a slot that standbys have too, for the day on which one is promoted. Needs Postgres 17.",
        Type.BOOLEAN,
        values=("true", "false"),
        default="false",
    ),
    refused("slot.stream.params", "Options for the plugin.", "they would change which changes are sent; leave it out"),
    ignored("slot.max.retries", "How often a slot in use is tried again.", "it is tried until it is free", Type.INT),
    ignored("slot.retry.delay.ms", "How long to wait between two tries.", "pauses grow from half a second", Type.LONG),
    supported(
        "publication.name",
        "Use this publication, which must exist. It is never altered. Default: one of our own.",
        importance=_MEDIUM,
    ),
    supported(
        "publication.autocreate.mode",
        "`disabled`: use `publication.name`. `filtered`, and `all_tables` with a warning: without `publication.name`,"
        " make one of our own for the tables that are copied.",
        values=PUBLICATION_MODES,
        default="filtered",
        refused_values={"no_tables": "a publication without tables sends nothing"},
        importance=_MEDIUM,
    ),
    refused(
        "publish.via.partition.root",
        "Whether a partitioned table's changes come under its own name.",
        "a partitioned table is copied as one table: give true, or leave it out",
        Type.BOOLEAN,
        harmless=("true",),
    ),
    refused(
        "replica.identity.autoset.values",
        "Replica identities that are set at the start.",
        "tables are never altered: do it with `alter table … replica identity full`",
    ),
    refused(
        "lsn.flush.mode",
        "Who tells the server which WAL it may drop.",
        "we confirm what is durable here, and nothing else does: give connector, or leave it out",
        harmless=("connector", "connector_and_driver"),
    ),
    refused(
        "flush.lsn.source",
        "Older form of `lsn.flush.mode`.",
        "we confirm what is durable here, and nothing else does: give true, or leave it out",
        Type.BOOLEAN,
        harmless=("true",),
    ),
    refused(
        "offset.mismatch.strategy",
        "What to do when slot and stored position differ.",
        "we continue where our log ends, or say that changes are lost; snapshot.mode=when_needed then copies again",
        harmless=("no_validation", "trust_offset"),
    ),
    ignored("lsn.flush.timeout.ms", "How long a confirmation may take.", "a confirmation is one message", Type.LONG),
    ignored("lsn.flush.timeout.action", "What to do after that time.", "a confirmation is one message"),
    ignored(
        "status.update.interval.ms",
        "How often the server is told our position.",
        "the server is told continuously",
        Type.INT,
    ),
    ignored("xmin.fetch.interval.ms", "How often the slot's xmin is looked up.", "not used here", Type.LONG),
)

_TABLES = (
    supported(
        "append.only.tables",
        "Regular expressions, each for a whole `schema.table`, in any case: "
        "[tables without a key](types.md#tables-without-a-key) whose rows are only added. Not with `publication.name`.",
        Type.LIST,
        importance=_MEDIUM,
    ),
)

_LAKE = (
    supported(
        "columns.as.text",
        "Columns that are copied as Postgres's [text](types.md), as patterns of whole names: `public.orders.note`.",
        Type.LIST,
    ),
    supported(
        "columns.generated",
        "Copy generated columns that are stored, too. Needs Postgres 18. With `publication.name`, that one decides.",
        Type.BOOLEAN,
        values=("true", "false"),
        default="false",
    ),
    supported(
        "stream.two.phase",
        "Have prepared transactions sent when they are prepared, not when they commit.",
        Type.BOOLEAN,
        values=("true", "false"),
        default="false",
    ),
    supported(
        "stream.origin",
        "With `none`, what the source itself received by replication is left out. Needs Postgres 16.",
        values=("any", "none"),
        default="any",
    ),
)

_VALUES = (
    refused(
        "message.key.columns",
        "Columns that identify a row, in place of its key.",
        "a row is known by its replica identity: `alter table … replica identity using index …` changes that",
    ),
    refused("interval.handling.mode", "What `interval` becomes.", _OWN_TEXT),
    refused("hstore.handling.mode", "What `hstore` becomes.", _OWN_TEXT),
    refused("money.fraction.digits", "How many digits `money` has.", _OWN_TEXT, Type.INT),
)

_CHANGES = (
    refused(
        "message.prefix.include.list",
        "Which messages in the WAL (`pg_logical_emit_message`) are told.",
        "messages in the WAL are not copied: write them into a table",
        Type.LIST,
    ),
    ignored("message.prefix.exclude.list", "Which of them are not.", "none of them is copied", Type.LIST),
)

_RUNNING = (
    ignored("heartbeat.interval.ms", "How often a heartbeat is sent.", "an idle slot is confirmed too", Type.INT),
    ignored("heartbeat.action.query", "SQL that is run with it.", "an idle slot is confirmed without it"),
)

PROPERTIES = (
    *grouped("Connection", _CONNECTION),
    *grouped("Slot and publication", _STREAM),
    *grouped("Tables", _TABLES),
    *grouped("Lake", _LAKE),
    *grouped("Columns and values", _VALUES),
    *grouped("Changes", _CHANGES),
    *grouped("Running", _RUNNING),
    *grouped("Names of Debezium 1", (renamed("slot.drop_on_stop", "slot.drop.on.stop"),)),
)
