"""From values that can be read each for itself to settings that fit together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tailrace.configuration._examination import Examination
from tailrace.configuration._table_lists import append_only_tables, table_patterns
from tailrace.configuration.quantities import LOG_QUOTA_BYTES_MIN, LOG_SEGMENT_BYTES_MIN
from tailrace.configuration.spark_master import FORMS, is_master
from tailrace.model.table import TableId
from tailrace.settings import ConnectorSettings, SnapshotMode, SparkSettings, Watermarking

_LIBPQ = {
    "database.hostname": "host",
    "database.port": "port",
    "database.user": "user",
    "database.password": "password",
    "database.dbname": "dbname",
    "database.sslmode": "sslmode",
    "database.sslcert": "sslcert",
    "database.sslkey": "sslkey",
    "database.sslpassword": "sslpassword",
    "database.sslrootcert": "sslrootcert",
}
_NEEDED = ("database.hostname", "database.user", "database.dbname")
_FOLDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_SPARK_CONF = "spark.conf."
_MODES = {"no_data": SnapshotMode.NEVER}


@dataclass(frozen=True)
class Parts:
    """What a configuration comes to."""

    name: str
    dsn: str = field(repr=False)
    settings: ConnectorSettings = field(repr=False)
    source_options: Mapping[str, Any]


def assembled(examination: Examination, lakes: Path | None) -> Parts | None:
    """None where a name or a lake is missing. What is wrong is added to the examination's problems."""
    name = examination.text("name")
    if name is None:
        _require(examination, "name", "missing: give the connector a name")
    dsn = _dsn(examination)
    lake = _lake(examination, name, lakes)
    settings = _settings(examination, lake or Path())
    options = _source_options(examination, settings)
    if name is None or lake is None:
        return None
    return Parts(name, dsn, settings, options)


def _require(examination: Examination, key: str, problem: str) -> None:
    """Unless the key has a problem already, which is why its value is missing."""
    if key not in examination.problems:
        examination.refuse(key, problem)


def _dsn(examination: Examination) -> str:
    given = [key for key in _LIBPQ if examination.text(key) is not None]
    whole = examination.text("database.dsn")
    if whole is not None:
        for key in given:
            examination.refuse(key, "is part of database.dsn already: give one of the two")
        return whole
    if "database.dsn" in examination.problems:
        return ""
    for key in _NEEDED:
        if key not in given:
            _require(examination, key, "required (or set database.dsn)")
    return " ".join(f"{_LIBPQ[key]}={_quoted(examination.values[key])}" for key in given)


def _quoted(value: str) -> str:
    """As libpq reads it in `key=value` pairs: any character may be in it."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _lake(examination: Examination, name: str | None, lakes: Path | None) -> Path | None:
    path = examination.text("lake.path")
    if path is not None:
        return Path(path)
    if lakes is None:
        _require(examination, "lake.path", "missing: give the lake's folder")
    elif name is not None and not _FOLDER.fullmatch(name):
        _require(
            examination, "lake.path", "missing: the connector's name cannot be a folder's, so give the lake's folder"
        )
    return None if lakes is None or name is None else lakes / name


def _settings(examination: Examination, lake: Path) -> ConnectorSettings:
    tables, exclude = table_patterns(examination)
    mode = examination.text("snapshot.mode") or SnapshotMode.INITIAL
    compression = examination.text("log.compression")
    defaults = ConnectorSettings(lake)
    return ConnectorSettings(
        lake,
        tables,
        exclude,
        format=examination.text("lake.format") or defaults.format,
        once=mode == SnapshotMode.INITIAL_ONLY,
        publish_every_seconds=(examination.number("lake.publish.interval.ms") or 1000) / 1000,
        snapshot_mode=_MODES.get(mode) or SnapshotMode(mode),
        window_rows=examination.number("incremental.snapshot.chunk.size"),
        watermarking=_watermarking(examination),
        log_keep_seconds=examination.seconds("log.keep", defaults.log_keep_seconds),
        retain_seconds=examination.seconds("lake.retain", defaults.retain_seconds),
        retain_all_seconds=examination.seconds("lake.retain.all", defaults.retain_all_seconds),
        log_quota_bytes=examination.bytes("log.quota", LOG_QUOTA_BYTES_MIN),
        log_compression=None if compression == "none" else compression,
        log_segment_bytes_max=examination.bytes("log.segment", LOG_SEGMENT_BYTES_MIN) or defaults.log_segment_bytes_max,
        readers_max=_readers(examination) or defaults.readers_max,
        signal_table=_signal_table(examination),
        signal_file=_signal_file(examination),
        spark=_spark(examination),
    )


def _readers(examination: Examination) -> int | None:
    ours, theirs = examination.number("readers.max"), examination.number("snapshot.max.threads")
    if ours is not None and theirs is not None and ours != theirs:
        examination.refuse("snapshot.max.threads", "is the same as readers.max: give one of the two")
    return ours or theirs


def _signal_table(examination: Examination) -> str | None:
    table = examination.text("signal.data.collection")
    if table is None or not _is_enabled(examination, "source"):
        return None
    try:
        return str(TableId.parse(table))
    except ValueError:
        examination.refuse("signal.data.collection", "is not the whole name of a table: it looks like public.signals")
        return None


def _watermarking(examination: Examination) -> Watermarking:
    key = "incremental.snapshot.watermarking.strategy"
    how = Watermarking(examination.text(key) or Watermarking.READ_ONLY)
    if how is Watermarking.READ_ONLY or examination.text("read.only") == "true":
        return Watermarking.READ_ONLY
    if examination.text("signal.data.collection") is None or not _is_enabled(examination, "source"):
        examination.refuse(key, "needs signal.data.collection to write to; without it, windows are exact all the same")
    return how


def _signal_file(examination: Examination) -> Path | None:
    path = examination.text("signal.file")
    if path is None and "file" in examination.items("signal.enabled.channels"):
        _require(examination, "signal.file", "missing: the channel file is enabled and needs it")
    return Path(path) if path is not None and _is_enabled(examination, "file") else None


def _is_enabled(examination: Examination, channel: str) -> bool:
    channels = examination.items("signal.enabled.channels")
    return not channels or channel in channels


def _spark(examination: Examination) -> SparkSettings:
    conf = []
    for key, value in examination.values.items():
        if key.startswith(_SPARK_CONF):
            name = key.removeprefix(_SPARK_CONF)
            if not name.startswith("spark."):
                examination.refuse(key, f"is no setting of Spark's: write {_SPARK_CONF}spark.{name}")
            conf.append((name, value))
    master = examination.text("spark.master") or SparkSettings().master
    if not is_master(master):
        examination.refuse("spark.master", f"is not a Spark master: give one of {FORMS}")
    return SparkSettings(master, tuple(conf), examination.text("spark.ui") == "true")


def _source_options(examination: Examination, settings: ConnectorSettings) -> dict[str, Any]:
    return {
        "slot": _slot(examination),
        "publication": _publication(examination),
        "append_only": append_only_tables(examination),
        "signal_table": settings.signal_table,
        "as_text": list(examination.items("columns.as.text")),
        "generated": examination.text("columns.generated") == "true",
        "stream": {
            "two_phase": examination.text("stream.two.phase") == "true",
            "origin": examination.text("stream.origin") or "any",
            "failover": examination.text("slot.failover") == "true",
        },
    }


def _slot(examination: Examination) -> str | None:
    name = examination.text("slot.name")
    if name is not None and not re.fullmatch("[a-z0-9_]{1,63}", name):
        examination.refuse("slot.name", "may have up to 63 lowercase letters, digits and underscores")
    return name


def _publication(examination: Examination) -> str | None:
    name, mode = examination.text("publication.name"), examination.text("publication.autocreate.mode")
    key = "publication.autocreate.mode"
    if name is None and mode == "disabled":
        _require(examination, "publication.name", f"missing: {key} is disabled, so name the one that is there")
    if name is None and mode == "all_tables":
        examination.warn(key, "a publication of the tables that are copied is made")
    if name is not None and mode in ("all_tables", "filtered"):
        examination.warn(key, "publication.name is used as it is: it is neither made nor altered")
    return name
