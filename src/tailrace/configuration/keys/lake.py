"""Properties of our own: the lake, the log, and Spark."""

from __future__ import annotations

from tailrace.source.door.property import Importance, Type, grouped, supported

PUBLISH_MS_MIN = 100

_MEDIUM = Importance.MEDIUM

_LAKE = (
    supported(
        "lake.path",
        "The lake's folder, which is made when missing, or its place in a [bucket](buckets.md): `s3://BUCKET/NAME`. In "
        "a server, the default is a folder of the connector's name.",
        importance=Importance.HIGH,
    ),
    supported(
        "lake.home",
        "Of a lake in a bucket: the local folder for its log and state. Default: one in the user's state folder.",
    ),
    supported(
        "lake.storage.*",
        "How the store of a [bucket](buckets.md) is reached: `lake.storage.region`, `lake.storage.endpoint`.",
    ),
    supported("lake.format", "The format of the lake's tables.", default="delta"),
    supported(
        "lake.publish.interval.ms",
        "How often changes are folded into the tables, at most. Live reads do not wait for it.",
        Type.INT,
        default="1000",
        minimum=PUBLISH_MS_MIN,
        importance=_MEDIUM,
    ),
    supported(
        "lake.retain",
        "How long published cuts stay readable, fewer of them with age: `7d`, `12h`, `30min`, `90s`.",
        default="7d",
        importance=_MEDIUM,
    ),
    supported("lake.retain.all", "How long every published cut stays readable.", default="1h", importance=_MEDIUM),
    supported(
        "lake.confirm",
        "When changes are confirmed to the source, which may then forget them. `disk`: when they are in the log, on "
        "this machine's disk. `lake`: when a published cut has them, so that the home may be lost. Default: `lake` for "
        "a lake in a [bucket](buckets.md), else `disk`.",
        values=("disk", "lake"),
        importance=_MEDIUM,
    ),
    supported(
        "readers.max",
        "How many connections read rows at once while tables are copied.",
        Type.INT,
        default="16",
        minimum=1,
    ),
)

_LOG = (
    supported(
        "log.quota",
        "How much disk the [log](log.md) may take: `20GB`, `512MB`; at least `64MB`. Default: as much as there is.",
        importance=_MEDIUM,
    ),
    supported("log.compression", "How what is logged is compressed.", values=("none", "lz4", "zstd"), default="none"),
    supported("log.segment", "How large one file of the log becomes; at least `1MB`.", default="256MB"),
    supported("log.keep", "How long changes stay readable in the log after they were published.", default="1d"),
)

_SPARK = (
    supported("spark.master", "Where Spark works: `local[*]`, or a cluster, `spark://host:7077`.", default="local[*]"),
    supported(
        "spark.conf.*",
        "A setting of Spark's, instead of ours: `spark.conf.spark.executor.memory`.",
    ),
    supported(
        "spark.ui",
        "Show Spark's own page of jobs and tasks, on this machine alone.",
        Type.BOOLEAN,
        values=("true", "false"),
        default="false",
    ),
)

LAKE = (*grouped("Lake", _LAKE), *grouped("Log", _LOG), *grouped("Spark", _SPARK))
