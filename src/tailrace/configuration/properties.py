"""Every property that a configuration may have: Debezium's for Postgres, Kafka Connect's, and ours.

A key that is in none of them is refused, so a misspelt one never goes unnoticed.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence

from tailrace.configuration._connect_properties import CONNECT
from tailrace.configuration._event_properties import EVENTS
from tailrace.configuration._lake_properties import LAKE
from tailrace.configuration._property import NOTHING, Importance, Property, Type, Verdict, ignored
from tailrace.configuration._snapshot_properties import SNAPSHOTS
from tailrace.configuration._source_properties import SOURCE
from tailrace.hidden import MASK

__all__ = ["MASK", "PROPERTIES", "Importance", "Property", "Type", "Verdict", "is_secret", "nearest", "property_of"]

PROPERTIES: Sequence[Property] = (*SOURCE, *SNAPSHOTS, *LAKE, *EVENTS, *CONNECT)
"""In the order in which the documentation has them. Families come after the keys that they would cover too."""

_NAMED = {each.name: each for each in PROPERTIES}
_FAMILIES = [each for each in PROPERTIES if each.is_family]
_OWNERS = ("converters", "post.processors")
"""Each lists names, and what a name means is said under `NAME.…`."""
_SECRET = re.compile(
    r"pass(word|wd|phrase|code)?\b|pwd|secret|token|credential|jaas|user\.info|auth|"
    r"(access|account|api|private|sas|shared)[._-]?key|connection[._-]?string|\bdsn\b|salt",
    re.IGNORECASE,
)


def property_of(key: str, properties: Mapping[str, str] = NOTHING) -> Property | None:
    """What `key` is, in a configuration with these properties; None for one that we do not know."""
    if key in _NAMED:
        return _NAMED[key]
    for family in _FAMILIES:
        if family.covers(key):
            return family
    for owner in _OWNERS:
        names = [name.strip() for name in properties.get(owner, "").split(",")]
        if any(name and key.startswith(f"{name}.") for name in names):
            return ignored(key, f"Belongs to `{owner}`.", f"it counts with {owner} only, which are refused")
    return None


def is_secret(key: str, properties: Mapping[str, str] = NOTHING) -> bool:
    """Whether the value of a key is never shown. So is that of every key that we do not know."""
    found = property_of(key, properties)
    return found is None or found.type is Type.PASSWORD or _SECRET.search(key) is not None


def nearest(key: str) -> str | None:
    """The known key that an unknown one was probably meant to be."""
    close = difflib.get_close_matches(key, [name for name in _NAMED if "*" not in name], n=1, cutoff=0.75)
    return close[0] if close else None
