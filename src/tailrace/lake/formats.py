"""The table formats there are, by name. The only place that knows particular ones, and only when asked."""

from __future__ import annotations

from importlib import import_module

from tailrace.errors import DefiniteError
from tailrace.lake.door import LakeFormat

DEFAULT = "delta"
_FORMATS = {"delta": "tailrace.lake.delta.format:DeltaFormat"}


def register(name: str, path: str) -> None:
    """Make another format known to this process: `module:Class`."""
    _FORMATS[name] = path


def format_named(name: str) -> LakeFormat:
    """The format of this name."""
    if name not in _FORMATS:
        raise DefiniteError(f"unknown lake format {name!r}", f"known are {', '.join(sorted(_FORMATS))}")
    module, _, cls = _FORMATS[name].partition(":")
    found: LakeFormat = getattr(import_module(module), cls)()
    return found
