"""What two connectors of a server may not share: a lake, and what a source reserves, such as a replication slot."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tailrace.configuration.reading import Configuration
from tailrace.errors import DefiniteError
from tailrace.server.errors import ConflictError
from tailrace.source.kinds import source_of


def require_unshared(found: Configuration, others: Mapping[str, Configuration]) -> None:
    """A conflict that names the other connector; a definite error where the source's address makes no sense. A slot
    that is named by another address of the same server is not found here; the source refuses it later."""
    lake, reserved = _lake(found), _reserved(found)
    for name, other in others.items():
        theirs = _lake(other)
        if lake == theirs or lake in theirs.parents or theirs in lake.parents:
            raise ConflictError(f"lake.path: connector {name} has its lake in {theirs}", "choose another folder")
        if shared := reserved & _reserved_by_other(other):
            raise ConflictError(f"slot.name: connector {name} has the {min(shared)}", "choose another name")


def _lake(found: Configuration) -> Path:
    return found.settings.lake.resolve()


def _reserved(found: Configuration) -> frozenset[str]:
    return source_of(found.dsn, **found.source_options).reserved()


def _reserved_by_other(found: Configuration) -> frozenset[str]:
    """One whose address makes no sense has nothing anywhere."""
    try:
        return _reserved(found)
    except DefiniteError:
        return frozenset()
