"""Adoption: a log continues with the changes of another server.

Who calls this has every table copied again, and holds what keeps writers away. The log keeps its records and its id, so
that what is published can still be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from tailrace.log.files.disk import LogDisk
from tailrace.log.files.layout import load_manifest


def adopt(path: Path, identity: Mapping[str, str]) -> None:
    """Let the log be the one of this source from now on. Durable when this returns; can be done twice."""
    if (path / "log.json").exists():
        manifest = replace(load_manifest(path), identity=dict(identity))
        LogDisk().publish(path / "log.json", manifest.to_bytes())
