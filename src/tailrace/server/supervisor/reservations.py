"""What two connectors of a server may not share: a lake, and what a source reserves, such as a stream of changes.

One lookup for each part of a path, however many connectors there are.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path

from tailrace.configuration.reading import Configuration
from tailrace.model.lake_address import BucketLake
from tailrace.server.errors import RequestConflictError, RequestError
from tailrace.source.kinds import source_of, words_of


@dataclass(frozen=True)
class Reservation:
    """What one connector has for itself."""

    connector: str
    lake: Path
    reserved: frozenset[str]
    property: str
    """The one that names what is reserved."""

    @classmethod
    def of(cls, connector: str, found: Configuration) -> Reservation:
        """A definite error where the source's address makes no sense, or the lake is in no folder."""
        lake = found.settings.lake
        if isinstance(lake, BucketLake):
            raise RequestError(f"lake.path '{lake}' lies in a bucket: a server's lakes lie in folders", "name a folder")
        reserved = source_of(found.dsn, **found.source_options).reserved()
        return cls(connector, lake.resolve(), reserved, words_of(found.kind).reservation)


class Reservations:
    """What is taken, by who has it. One thread at a time."""

    def __init__(self) -> None:
        self._taken: dict[Hashable, Reservation] = {}
        self._lakes: dict[Path, Reservation] = {}
        self._below: dict[Path, dict[Path, Reservation]] = {}
        """By folder: those who have a lake somewhere below it, by lake."""
        self._reserved: dict[str, Reservation] = {}

    def take(self, owner: Hashable, reservation: Reservation) -> Reservation | None:
        """In place of what the owner has, which is returned. A conflict that names the other connector; nothing changes
        then. What is named by another address of the same server is not found here; the source refuses it
        later."""
        before = self.leave(owner)
        try:
            self._require_free(reservation)
        except RequestConflictError:
            if before is not None:
                self._put(owner, before)
            raise
        self._put(owner, reservation)
        return before

    def leave(self, owner: Hashable) -> Reservation | None:
        """What the owner had, which is free now."""
        reservation = self._taken.pop(owner, None)
        if reservation is not None:
            del self._lakes[reservation.lake]
            for folder in reservation.lake.parents:
                del self._below[folder][reservation.lake]
                if not self._below[folder]:
                    del self._below[folder]
            for each in reservation.reserved:
                del self._reserved[each]
        return reservation

    def hand_over(self, owner: Hashable, to: Hashable) -> None:
        """Another has the owner's reservation now, if there is one."""
        reservation = self.leave(owner)
        if reservation is not None:
            self._put(to, reservation)

    def _require_free(self, reservation: Reservation) -> None:
        around = [self._lakes[each] for each in (reservation.lake, *reservation.lake.parents) if each in self._lakes]
        for other in (*around, *self._below.get(reservation.lake, {}).values()):
            message = f"lake.path: connector {other.connector} has its lake in {other.lake}"
            raise RequestConflictError(message, "choose another folder")
        for each in sorted(reservation.reserved & self._reserved.keys()):
            message = f"{reservation.property}: connector {self._reserved[each].connector} has the {each}"
            raise RequestConflictError(message, "choose another name")

    def _put(self, owner: Hashable, reservation: Reservation) -> None:
        self._taken[owner] = reservation
        self._lakes[reservation.lake] = reservation
        for folder in reservation.lake.parents:
            self._below.setdefault(folder, {})[reservation.lake] = reservation
        self._reserved |= dict.fromkeys(reservation.reserved, reservation)
