"""What the command line calls a property: every option of a command that sets one, with the property's default."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tailrace.errors import DefiniteError
from tailrace.source import kinds
from tailrace.source.door.words import CommandOption

_LAKE = ("sync", "maintain")
_SPARK = ("sync", "verify", "maintain", "query", "serve")
_SIGNALS = ("sync", "doctor", "verify")

_SETTING = re.compile(r"spark\.[\w.-]+=.*", re.DOTALL)


def _spark_setting(given: str) -> str:
    if _SETTING.fullmatch(given) is None:
        raise DefiniteError(f"--spark-conf '{given}' is not a Spark setting", "write it as spark.KEY=VALUE")
    return given


_TABLES = (
    CommandOption(
        "tables",
        "table.include.list",
        "Tables to copy: 'public.*', orders. Repeatable. Default: all.",
        ("sync", "doctor"),
        "PATTERN",
    ),
    CommandOption(
        "exclude",
        "table.exclude.list",
        "Tables to leave out, as patterns. Repeatable.",
        ("sync", "doctor"),
        "PATTERN",
    ),
)
_OURS = (
    CommandOption(
        "publish-every",
        "lake.publish.interval.ms",
        "Minimum seconds between publishes; longer when they are expensive.",
        ("sync",),
        "SECONDS",
        in_seconds=True,
    ),
    CommandOption(
        "confirm",
        "lake.confirm",
        "When the source may forget changes: once they are on this disk, or once a published cut has them. Default: "
        "lake for a bucket, disk for a folder.",
        ("sync",),
    ),
    CommandOption("readers", "readers.max", "How many connections read rows at once.", ("sync", "verify")),
    CommandOption(
        "log-quota",
        "log.quota",
        "Disk limit of the log, for example 20GB; at least 64MB. Default: no limit.",
        ("sync",),
        "SIZE",
    ),
    CommandOption("log-compression", "log.compression", "Compress the log; it costs processor time.", ("sync",)),
    CommandOption("log-segment", "log.segment", "The size of a file of the log; at least 1MB.", ("sync",), "SIZE"),
    CommandOption(
        "spark-master",
        "spark.master",
        "Where Spark works: local[*], or a cluster, spark://host:7077.",
        _SPARK,
        "URL",
    ),
    CommandOption(
        "spark-conf",
        "spark.conf.*",
        "A setting of Spark's, instead of ours. Repeatable.",
        _SPARK,
        "KEY=VALUE",
        item=_spark_setting,
    ),
    CommandOption(
        "spark-ui",
        "spark.ui",
        "Show Spark's own page of jobs and tasks, on this machine alone.",
        ("sync", "verify", "serve"),
    ),
    CommandOption(
        "retain",
        "lake.retain",
        "How long published cuts stay readable, fewer of them with age: 7d, 12h.",
        _LAKE,
        "TIME",
    ),
    CommandOption(
        "retain-all", "lake.retain.all", "How long every published cut stays readable: 1h, 30min.", _LAKE, "TIME"
    ),
    CommandOption(
        "signal-table",
        "signal.data.collection",
        "Rows that are inserted into this table of the database are signals.",
        _SIGNALS,
        "TABLE",
    ),
    CommandOption("signal-file", "signal.file", "Lines that are appended to this file are signals.", ("sync",), "PATH"),
    CommandOption(
        "watermarks",
        "incremental.snapshot.watermarking.strategy",
        "What copies by windows write to the signal table before and after each window.",
        ("sync", "doctor"),
    ),
    CommandOption(
        "snapshot-mode",
        "snapshot.mode",
        "How existing rows are copied. initial: all at once when a lake begins; initial_only: and then end; "
        "incremental: a little at a time; never, no_data: not at all; when_needed: also again after changes were lost.",
        ("sync",),
    ),
    CommandOption(
        "chunk-rows",
        "incremental.snapshot.chunk.size",
        "Rows a table is copied by at a time. Default: as many as take a few seconds.",
        ("sync",),
        "N",
    ),
)


def all_options() -> Sequence[CommandOption]:
    """Of every command, those that every source has and those of each kind, in the order in which help shows them."""
    return [*_TABLES, *(each for words in kinds.all_words() for each in words.options), *_OURS]


def options_of(command: str) -> Sequence[CommandOption]:
    """Those of one command."""
    return [each for each in all_options() if command in each.commands]
