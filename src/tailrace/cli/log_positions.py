"""Positions of the source, as the source itself writes them. The log knows only their ordinals."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tailrace.errors import DefiniteError
from tailrace.model.position import SourcePosition
from tailrace.source.kinds import codec_of

Formatter = Callable[[SourcePosition], str]


def formatter(identity: Mapping[str, str]) -> Formatter:
    """How positions of this source are written; plain ordinals where its kind is not known or cannot be loaded."""
    try:
        return codec_of(identity["source"]).format
    except (KeyError, DefiniteError, ImportError, AttributeError):
        return lambda position: str(position.ordinal)
