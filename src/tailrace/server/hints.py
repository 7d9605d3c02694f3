"""Hints in the words of a configuration: what a command line calls `--exclude` is `table.exclude.list` here."""

from __future__ import annotations

import re
from functools import cache

from tailrace.configuration.options import all_options
from tailrace.configuration.properties import Type, property_of

_WITH_VALUE = ("snapshot-mode", "append-only", "exclude", "as-of")
"""Options that hints give with a value."""


def in_properties(hint: str) -> str:
    """The hint, for someone who configures a connector. Options that no property stands for stay."""
    return _option().sub(_property, hint)


@cache
def names() -> dict[str, str]:
    """What to write for an option, by its name: a property, of a flag with its value."""
    found = {"as-of": "as_of"}
    for option in all_options():
        known = property_of(option.key)
        if known is not None and not known.is_family and "serve" not in option.commands:
            found.setdefault(option.name, f"{option.key}=true" if known.type is Type.BOOLEAN else option.key)
    return found


@cache
def _option() -> re.Pattern[str]:
    bare = "|".join(sorted(names(), key=len, reverse=True))
    return re.compile(
        rf"(?<![\w-])--(?:(?P<key>{'|'.join(_WITH_VALUE)}) (?P<value>[^\s,;:]+)|(?P<name>{bare}))(?![\w-])"
    )


def _property(found: re.Match[str]) -> str:
    return f"{names()[found['key']]}={found['value']}" if found["key"] else names()[found["name"]]
