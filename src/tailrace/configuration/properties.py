"""Every property that a configuration may have: Debezium's, Kafka Connect's, ours, and those of the kind of source.

Which kind it is, `connector.class` says. A key that is none of its properties is refused, so a misspelt one never goes
unnoticed.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from functools import cache

from tailrace.configuration.keys.connect import CONNECT
from tailrace.configuration.keys.connector import TABLES, connector_properties
from tailrace.configuration.keys.events import EVENTS
from tailrace.configuration.keys.lake import LAKE
from tailrace.configuration.keys.snapshots import SNAPSHOTS
from tailrace.hidden import MASK
from tailrace.source import kinds
from tailrace.source.door.property import NOTHING, Importance, Property, Type, Verdict, ignored
from tailrace.source.door.words import SourceWords

__all__ = [
    "CLASS",
    "MASK",
    "Importance",
    "Property",
    "Type",
    "Verdict",
    "all_properties",
    "classes",
    "is_secret",
    "nearest",
    "property_of",
    "words_of",
]

CLASS = "connector.class"
_OWNERS = ("converters", "post.processors")
"""Each lists names, and what a name means is said under `NAME.…`."""
_SECRET = re.compile(
    r"pass(word|wd|phrase|code)?\b|pwd|secret|token|credential|jaas|user\.info|auth|"
    r"(access|account|api|private|sas|shared)[._-]?key|connection[._-]?string|\bdsn\b|salt",
    re.IGNORECASE,
)


def classes() -> tuple[str, ...]:
    """Every kind of connector that there is. Each has two names: Debezium's, so that its configurations work, and
    ours."""
    return tuple(name for words in kinds.all_words() for name in words.classes)


def words_of(properties: Mapping[str, str]) -> SourceWords:
    """The words of the source that is configured; of the first kind there is, where none is named that we know."""
    return kinds.words_of(_kind(properties) or "")


def _kind(properties: Mapping[str, str]) -> str | None:
    """None where there is no kind of source at all."""
    given = properties.get(CLASS, "").strip()
    known = sorted(kinds.all_words(), key=lambda words: given not in words.classes)
    return known[0].kind if known else None


def all_properties(properties: Mapping[str, str] = NOTHING) -> Sequence[Property]:
    """In the order in which the documentation has them. Families come after the keys that they would cover too."""
    return _all_properties(_kind(properties))


@cache
def _all_properties(kind: str | None) -> Sequence[Property]:
    theirs = () if kind is None else kinds.words_of(kind).properties
    default = None if kind is None else kinds.words_of(kind).classes[-1]
    ours = (*TABLES, *SNAPSHOTS, *LAKE, *EVENTS, *CONNECT)
    shared = {each.group for each in ours}
    own = [each for each in theirs if each.group not in shared]
    rest = [each for each in theirs if each.group in shared]
    listed = [*connector_properties(classes(), default), *own, *ours, *rest]
    groups = list(dict.fromkeys(each.group for each in listed))
    return sorted(listed, key=lambda each: groups.index(each.group))


@cache
def _by_name(kind: str | None) -> Mapping[str, Property]:
    return {each.name: each for each in _all_properties(kind)}


def property_of(key: str, properties: Mapping[str, str] = NOTHING) -> Property | None:
    """What `key` is, in a configuration with these properties; None for one that we do not know."""
    named = _by_name(_kind(properties))
    if key in named:
        return named[key]
    for family in named.values():
        if family.is_family and family.covers(key):
            return family
    for owner in _OWNERS:
        names = [name.strip() for name in properties.get(owner, "").split(",")]
        if any(name and key.startswith(f"{name}.") for name in names):
            return ignored(key, f"Belongs to `{owner}`.", f"it counts with {owner} only, which are refused")
    return None


def is_secret(key: str, properties: Mapping[str, str] = NOTHING) -> bool:
    """Whether the value of a key is never shown. So is that of every key that we do not know."""
    known = property_of(key, properties)
    return known is None or known.type is Type.PASSWORD or _SECRET.search(key) is not None


def nearest(key: str, properties: Mapping[str, str] = NOTHING) -> str | None:
    """The known key that an unknown one was probably meant to be."""
    names = [each.name for each in all_properties(properties) if not each.is_family]
    close = difflib.get_close_matches(key, names, n=1, cutoff=0.75)
    return close[0] if close else None
