"""The kinds of source there are, by name. The only place that knows particular databases, and only when asked."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from tailrace.errors import DefiniteError
from tailrace.source.door.codec import Codec
from tailrace.source.door.source import Source

_POSTGRES = "tailrace.source.postgres.source:PostgresSource"
_KINDS = {"postgres": _POSTGRES}
_CODECS = {_POSTGRES: "tailrace.source.postgres.codec:PostgresCodec"}
"""Codecs that can be loaded without the rest of their source. The class of any other source is its codec."""
_PRELOADS = ("tailrace.source.postgres.rows.copy_text:load_compiled",)
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_SCHEMES = {"postgresql": "postgres", "postgres": "postgres"}


def register(kind: str, path: str) -> None:
    """Make another kind known to this process: `module:Class`."""
    _KINDS[kind] = path


def known() -> list[str]:
    """The names of all kinds."""
    return sorted(_KINDS)


def preload() -> None:
    """Load whatever reads rows of any kind: for a process that forks others which will."""
    for kind in _KINDS:
        source_class(kind)
    for path in _PRELOADS:
        _named(path)()


def source_class(kind: str) -> type[Source]:
    """The class of a kind."""
    return load(_path(kind))


def codec_of(kind: str) -> type[Codec]:
    """What decodes, parses and formats for a kind. Postgres's loads no driver."""
    path = _path(kind)
    codec: type[Codec] = _named(_CODECS.get(path, path))
    return codec


def load(path: str) -> type[Source]:
    """The class at `module:Class`."""
    loaded: type[Source] = _named(path)
    return loaded


def path_of(source: Source) -> str:
    """Where `load` finds the class of a source."""
    return f"{type(source).__module__}:{type(source).__qualname__}"


def source_of(dsn: str, **options: Any) -> Source:
    """The source that a connection string names. Without a scheme it is taken for Postgres's `key=value` form."""
    # A password in the `key=value` form may have anything in it, and must not get into a message.
    scheme = _SCHEME.match(dsn)
    kind = _SCHEMES.get(scheme[1]) if scheme else "postgres"
    if kind is None:
        raise DefiniteError(
            f"{scheme and scheme[1]}:// is not supported; only postgresql:// is",
            "it looks like postgresql://user:password@host:5432/database",
        )
    source: Source = source_class(kind)(dsn=dsn, **options)  # type: ignore[call-arg]
    return source


def _path(kind: str) -> str:
    if kind not in _KINDS:
        raise DefiniteError(f"unknown kind of source {kind!r}", f"known are {', '.join(sorted(_KINDS))}")
    return _KINDS[kind]


def _named(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
