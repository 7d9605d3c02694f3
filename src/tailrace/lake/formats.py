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


def path_of(name: str) -> str:
    """Where a format is: `module:Class`, for `register` in another process."""
    if name not in _FORMATS:
        raise DefiniteError(f"unknown lake format {name!r}", f"known are {', '.join(sorted(_FORMATS))}")
    return _FORMATS[name]


def format_named(name: str) -> LakeFormat:
    """The format of this name."""
    module, _, cls = path_of(name).partition(":")
    found: LakeFormat = getattr(import_module(module), cls)()
    return found
