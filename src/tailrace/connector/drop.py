"""Undo what connectors made at the source."""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.lake.home import LakeHome
from tailrace.model.lake_address import LakeAddress
from tailrace.source.door.source import Source
from tailrace.source.door.stream import Stream
from tailrace.source.door.values import Claim


def drop_source(source: Source, lake: LakeAddress) -> list[str]:
    """Drop what this lake's connector created; says what was done. What others created stays."""
    home = LakeHome.find(lake)
    with home.locked():
        home.require_identity(source.identify())
        record = home.source()
        assert record is not None
        return source.drop(record.claim)


def drop_leftovers(stream: Stream, claims: Sequence[Claim]) -> list[str]:
    """Drop what connectors created whose lakes are gone; says what was done."""
    return [line for claim in claims for line in stream.drop(claim)]
