"""Undo what a connector made at the source."""

from __future__ import annotations

from pathlib import Path

from tailrace.lake.home import LakeHome
from tailrace.source.door import Source


def drop_source(source: Source, lake: Path) -> list[str]:
    """Drop what this lake's connector created; says what was done. What others created stays."""
    home = LakeHome.find(lake)
    with home.locked():
        home.require_identity(source.identify())
        record = home.source()
        assert record is not None
        return source.drop(record.claim)
