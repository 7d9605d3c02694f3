"""Hints in the words of a configuration: what a command line calls `--exclude` is `table.exclude.list` here."""

from __future__ import annotations

import re

_WITH_VALUE = {
    "snapshot-mode": "snapshot.mode",
    "append-only": "append.only.tables",
    "exclude": "table.exclude.list",
    "as-of": "as_of",
}
_NAMES = {
    **_WITH_VALUE,
    "failover-slot": "slot.failover=true",
    "generated-columns": "columns.generated=true",
    "publication": "publication.name",
    "readers": "readers.max",
    "signal-table": "signal.data.collection",
    "slot": "slot.name",
    "watermarks": "incremental.snapshot.watermarking.strategy",
}
_OPTION = re.compile(
    rf"(?<![\w-])--(?:(?P<key>{'|'.join(_WITH_VALUE)}) (?P<value>[^\s,;:]+)|(?P<name>{'|'.join(_NAMES)}))(?![\w-])"
)


def in_properties(hint: str) -> str:
    """The hint, for someone who configures a connector. Options that no property stands for stay."""
    return _OPTION.sub(_property, hint)


def _property(found: re.Match[str]) -> str:
    return f"{_NAMES[found['key']]}={found['value']}" if found["key"] else _NAMES[found["name"]]
