"""A version of a Delta table for readers without Spark: its columns from its log, its rows by DuckDB's extension."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow.parquet as pq

from tailrace.errors import DefiniteError
from tailrace.lake.delta.log.versions import FOLDER, CommitLog
from tailrace.lake.delta.metadata import Metadata
from tailrace.lake.door import Scan
from tailrace.model.table import Column

_PURPOSES = {"delta": "Delta Lake", "httpfs": "buckets"}


def columns(log: CommitLog, version: int) -> list[Column]:
    """A version's columns, with what their comments say."""
    return Metadata.of(_metadata(log, version)).columns


def scan(log: CommitLog, version: int) -> Scan:
    if "%" in log.table.address:
        # The extension takes it for the beginning of an escaped letter, once or twice.
        message = f"DuckDB cannot read a Delta table in {log.table.address}: there is a % in it"
        raise DefiniteError(message, "read it with Spark: tailrace query --engine spark")
    path = _literal(log.table.address)
    options = f"version => {version}"
    shape = columns(log, version)
    has_floats = any(column.type in ("float", "double") for column in shape)
    if has_floats or any("." in column.name for column in shape):
        # A file is skipped by its bounds. The extension takes minus zero for less than zero there, and a name with a
        # dot in it for a field of another column.
        options += ", pushdown_filters => 'none'"
    if has_floats:
        # DuckDB takes bounds that leave NaN out for those of all values.
        options += ", can_have_nan => true"
    sql = f"delta_scan({path}, {options})"
    if "://" not in log.table.address:
        return Scan(sql, _extension("delta"))
    return Scan(sql, _extension("delta"), _extension("httpfs"), s3_secret(log.table.address, log.table.access))


def _metadata(log: CommitLog, version: int) -> dict[str, Any]:
    """The newest description of the table at or before a version."""
    checkpoints = log.checkpoints()
    for number in range(version, -1, -1):
        found = _described_in_commit(log, number)
        if found is None and number in checkpoints:
            found = _described_in_checkpoint(log, number)
        if found is not None:
            return found
        if not log.has(number):
            break
    raise DefiniteError(f"{log.table.address} does not say which columns version {version} has", "read a later cut")


def _described_in_commit(log: CommitLog, version: int) -> dict[str, Any] | None:
    try:
        # Values in it may contain what Unicode counts as the end of a line.
        lines = log.table.get(log.commit_file(version)).decode().split("\n")
    except FileNotFoundError:
        return None
    return next((json.loads(line)["metaData"] for line in lines if line.startswith('{"metaData"')), None)


def _described_in_checkpoint(log: CommitLog, version: int) -> dict[str, Any] | None:
    begin = f"{FOLDER}/{version:020d}.checkpoint"
    for name in log.names():
        if not (name.startswith(begin) and name.endswith(".parquet")):
            continue
        with log.table.open(name) as file:
            described = pq.read_table(file, columns=["metaData"]).column("metaData").drop_null()
        for row in described:
            found: dict[str, Any] = row.as_py()
            return {**found, "configuration": dict(found.get("configuration") or ())}
    return None


def s3_secret(address: str, access: Mapping[str, str]) -> str:
    """What makes DuckDB reach one place in a bucket, and nothing else, with what reaches it here."""
    endpoint = urlsplit(access.get("endpoint", ""))
    is_in_path = access.get("virtual_hosted_style_request", "false").lower() != "true"
    settings = {
        "scope": address,
        "region": access.get("region", "us-east-1"),
        "key_id": access.get("access_key_id"),
        "secret": access.get("secret_access_key"),
        "session_token": access.get("token"),
        "endpoint": endpoint.netloc or None,
        # The provider's own store is found by the bucket's name; others have their buckets in the path.
        "url_style": "path" if endpoint.netloc and is_in_path else None,
        "use_ssl": "false" if endpoint.scheme == "http" else None,
    }
    listed = ", ".join(f"{name} {_literal(value)}" for name, value in settings.items() if value)
    name = f"tailrace_{hashlib.sha256(address.encode()).hexdigest()[:16]}"
    return f"create or replace temporary secret {name} (type s3, {listed})"


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _extension(name: str) -> Path:
    """One of DuckDB's extensions, as the package of that name brings it for the DuckDB that is here."""
    from duckdb import __version__

    package = find_spec(f"duckdb_extension_{name}")
    for folder in (package.submodule_search_locations or ()) if package else ():
        file = Path(folder, "extensions", f"v{__version__}", f"{name}.duckdb_extension")
        if file.exists():
            return file
    hint = f"pip install duckdb-extension-{name}=={__version__}"
    raise DefiniteError(f"DuckDB {__version__} has no extension for {_PURPOSES[name]} here", hint)
