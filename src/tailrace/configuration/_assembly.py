"""From values that can be read each for itself to settings that fit together."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tailrace.configuration._examination import Examination
from tailrace.configuration.properties import words_of
from tailrace.configuration.tables import chosen, of_schemas
from tailrace.configuration.values import MASTERS, is_master
from tailrace.errors import DefiniteError
from tailrace.model.lake_address import LakeAddress, parse_lake
from tailrace.model.table import TableId
from tailrace.model.table_pattern import parse_expression
from tailrace.settings import Confirm, ConnectorSettings, SnapshotMode, SparkSettings, Watermarking

LOG_QUOTA_BYTES_MIN = 64 << 20
LOG_SEGMENT_BYTES_MIN = 1 << 20
_FOLDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_STORAGE = "lake.storage."
_SPARK_CONF = "spark.conf."
_MODES = {"no_data": SnapshotMode.NEVER}


@dataclass(frozen=True)
class ConnectorParts:
    """What a configuration comes to."""

    name: str
    kind: str
    dsn: str = field(repr=False)
    settings: ConnectorSettings = field(repr=False)
    source_options: Mapping[str, Any]


def assembled(examination: Examination, lakes: Path | None) -> ConnectorParts | None:
    """None where a name or a lake is missing. What is wrong is added to the examination's problems."""
    name = examination.text("name")
    if name is None:
        examination.require("name", "missing: give the connector a name")
    words = words_of(examination.properties)
    dsn = words.dsn(examination)
    lake = _lake(examination, name, lakes)
    settings = settings_of(examination, lake or Path())
    options = {**words.arguments(examination), "signal_table": settings.signal_table}
    if name is None or lake is None:
        return None
    return ConnectorParts(name, words.kind, dsn, settings, options)


def _lake(examination: Examination, name: str | None, lakes: Path | None) -> LakeAddress | None:
    path, home = examination.text("lake.path"), examination.text("lake.home")
    if path is not None:
        try:
            return parse_lake(path, _storage_options(examination), Path(home) if home else None)
        except DefiniteError as error:
            examination.refuse("lake.path", f"{error.message}: {error.hint}")
            return None
    if lakes is None:
        examination.require("lake.path", "missing: give the lake's folder")
    elif name is not None and not _FOLDER.fullmatch(name):
        examination.require(
            "lake.path", "missing: the connector's name cannot be a folder's, so give the lake's folder"
        )
    return None if lakes is None or name is None else lakes / name


def _storage_options(examination: Examination) -> list[tuple[str, str]]:
    values = examination.values.items()
    return [(key.removeprefix(_STORAGE), value) for key, value in values if key.startswith(_STORAGE)]


def settings_of(examination: Examination, lake: LakeAddress) -> ConnectorSettings:
    """The settings that are not about the source."""
    tables, exclude = _table_patterns(examination)
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
        confirm=_confirm(examination),
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


def _confirm(examination: Examination) -> Confirm | None:
    how = examination.text("lake.confirm")
    return None if how is None else Confirm(how)


def _table_patterns(examination: Examination) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Patterns of tables to copy, none for all of them, and of tables to leave out."""
    exclude = examination.table_patterns("table.exclude.list")
    exclude += of_schemas(examination.read_each("schema.exclude.list", parse_expression))
    return tuple(_included(examination)), tuple(exclude)


def _included(examination: Examination) -> list[str]:
    key = "table.include.list"
    schemas = examination.read_each("schema.include.list", parse_expression)
    if not examination.items(key):
        return of_schemas(schemas)
    patterns = [*examination.lists.get(key, ()), *examination.read_each(key, lambda item: chosen(item, schemas))]
    if not patterns and key not in examination.problems:
        examination.refuse(key, "names no table in the schemas of schema.include.list")
    return patterns


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
        examination.require("signal.file", "missing: the channel file is enabled and needs it")
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
    for setting in examination.lists.get(f"{_SPARK_CONF}*", ()):
        name, _, value = setting.partition("=")
        conf.append((name, value))
    master = examination.text("spark.master") or SparkSettings().master
    if not is_master(master):
        examination.refuse(
            "spark.master", f"{examination.shown('spark.master')} is not a Spark master: give one of {MASTERS}"
        )
    return SparkSettings(master, tuple(conf), examination.text("spark.ui") == "true")
