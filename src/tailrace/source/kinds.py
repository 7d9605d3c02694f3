"""The kinds of source there are, by name. The only place that knows particular databases, and only when asked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tailrace.errors import DefiniteError
from tailrace.source.door.codec import Codec
from tailrace.source.door.source import Source
from tailrace.source.door.words import SourceWords

_POSTGRES = "tailrace.source.postgres.source:PostgresSource"
_KINDS = {"postgres": _POSTGRES}
_CODECS = {_POSTGRES: "tailrace.source.postgres.codec:PostgresCodec"}
"""Codecs that can be loaded without the rest of their source. The class of any other source is its codec."""
_WORDS = {"postgres": "tailrace.source.postgres.words.words:WORDS"}
"""The words of each kind, the one first that is meant where nothing says which."""
_PRELOADS = ("tailrace.source.postgres.rows.copy_text:load_compiled",)
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)


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
        _import(path)()


def source_class(kind: str) -> type[Source]:
    """The class of a kind."""
    return load(_path(kind))


def codec_of(kind: str) -> type[Codec]:
    """What decodes, parses and formats for a kind. Postgres's loads no driver."""
    path = _path(kind)
    codec: type[Codec] = _import(_CODECS.get(path, path))
    return codec


def load(path: str) -> type[Source]:
    """The class at `module:Class`."""
    loaded: type[Source] = _import(path)
    return loaded


def path_of(source: Source) -> str:
    """Where `load` finds the class of a source."""
    return f"{type(source).__module__}:{type(source).__qualname__}"


@cache
def all_words() -> Sequence[SourceWords]:
    """The words of every kind whose folder is there. Loads no driver."""
    return [words_of(kind) for kind, path in _WORDS.items() if _is_installed(path)]


def words_of(kind: str) -> SourceWords:
    """What people call a kind of source and all that belongs to it."""
    if kind not in _WORDS:
        raise DefiniteError(f"there are no words for a source of kind {kind!r}", f"known are {', '.join(_WORDS)}")
    words: SourceWords = _import(_WORDS[kind])
    return words


def words_for(dsn: str) -> SourceWords:
    """Of the kind that a connection string names. Without a scheme it is one of the first kind there is."""
    # A password in the `key=value` form may have anything in it, and must not get into a message.
    scheme = _SCHEME.match(dsn)
    words = next((each for each in all_words() if scheme is None or scheme[1] in each.schemes), None)
    if words is None:
        known = ", ".join(f"{each.schemes[0]}://" for each in all_words())
        raise DefiniteError(
            f"{scheme and scheme[1]}:// is not supported; only {known} is",
            f"it looks like {all_words()[0].example_dsn}",
        )
    return words


def source_of(dsn: str, **options: Any) -> Source:
    """The source that a connection string names."""
    source: Source = source_class(words_for(dsn).kind)(dsn=dsn, **options)  # type: ignore[call-arg]
    return source


def _path(kind: str) -> str:
    if kind not in _KINDS:
        raise DefiniteError(f"unknown kind of source {kind!r}", f"known are {', '.join(sorted(_KINDS))}")
    return _KINDS[kind]


def _import(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)


def _is_installed(path: str) -> bool:
    """Whether the folder of a kind is there."""
    try:
        return find_spec(path.partition(":")[0]) is not None
    except ModuleNotFoundError:
        return False
