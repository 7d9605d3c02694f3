"""What two connectors of a server may not share: a lake, and what a source reserves, such as a replication slot.

One lookup for each part of a path, however many connectors there are.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path

from tailrace.configuration.reading import Configuration
from tailrace.server.errors import ConflictError
from tailrace.source.kinds import source_of


@dataclass(frozen=True)
class Place:
    """What one connector has for itself."""

    connector: str
    lake: Path
    reserved: frozenset[str]

    @classmethod
    def of(cls, connector: str, found: Configuration) -> Place:
        """A definite error where the source's address makes no sense."""
        reserved = source_of(found.dsn, **found.source_options).reserved()
        return cls(connector, found.settings.lake.resolve(), reserved)


class Places:
    """The places that are taken, by who has them. One thread at a time."""

    def __init__(self) -> None:
        self._taken: dict[Hashable, Place] = {}
        self._lakes: dict[Path, Place] = {}
        self._below: dict[Path, dict[Path, Place]] = {}
        """By folder: those who have a lake somewhere below it, by lake."""
        self._reserved: dict[str, Place] = {}

    def take(self, owner: Hashable, place: Place) -> Place | None:
        """In place of what the owner has, which is returned. A conflict that names the other connector; nothing changes
        then. A slot that is named by another address of the same server is not found here; the source refuses it
        later."""
        before = self.leave(owner)
        try:
            self._require_free(place)
        except ConflictError:
            if before is not None:
                self._put(owner, before)
            raise
        self._put(owner, place)
        return before

    def leave(self, owner: Hashable) -> Place | None:
        """What the owner had, which is free now."""
        place = self._taken.pop(owner, None)
        if place is not None:
            del self._lakes[place.lake]
            for folder in place.lake.parents:
                del self._below[folder][place.lake]
                if not self._below[folder]:
                    del self._below[folder]
            for each in place.reserved:
                del self._reserved[each]
        return place

    def hand_over(self, owner: Hashable, to: Hashable) -> None:
        """Another has the owner's place now, if there is one."""
        place = self.leave(owner)
        if place is not None:
            self._put(to, place)

    def _require_free(self, place: Place) -> None:
        around = [self._lakes[each] for each in (place.lake, *place.lake.parents) if each in self._lakes]
        for other in (*around, *self._below.get(place.lake, {}).values()):
            message = f"lake.path: connector {other.connector} has its lake in {other.lake}"
            raise ConflictError(message, "choose another folder")
        for each in sorted(place.reserved & self._reserved.keys()):
            message = f"slot.name: connector {self._reserved[each].connector} has the {each}"
            raise ConflictError(message, "choose another name")

    def _put(self, owner: Hashable, place: Place) -> None:
        self._taken[owner] = place
        self._lakes[place.lake] = place
        for folder in place.lake.parents:
            self._below.setdefault(folder, {})[place.lake] = place
        self._reserved |= dict.fromkeys(place.reserved, place)
