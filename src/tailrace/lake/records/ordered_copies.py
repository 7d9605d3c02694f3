"""What the signals that ask for copies have begun, and what is paused. One file, replaced as a whole.

Which copy of a table a signal asked for is written down before the table is told of it: after a crash the next run
finds which tables it has not told yet, and tells none twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tailrace.model.table import TableId
from tailrace.storage.files import read_json, write_json

ALL_PAUSED = "*"


@dataclass(frozen=True)
class OrderedCopies:
    """The copies that one signal asked for."""

    copies: Mapping[str, int] = field(default_factory=dict)
    """By table: the number of the copy that is the answer; a later one is too."""
    told: tuple[str, ...] = ()
    """Tables whose end has been told."""
    parts: tuple[str, ...] = ()
    """Tables that were whole when this was asked for: only some of their rows are to be copied again."""


@dataclass(frozen=True)
class Snapshots:
    """All of it. Stored."""

    orders: Mapping[str, OrderedCopies] = field(default_factory=dict)
    """By the id of the signal, those that have not ended."""
    paused: frozenset[str] = frozenset()
    """Tables, or `ALL_PAUSED`."""
    cut_short: Mapping[str, int] = field(default_factory=dict)
    """By table: the copy of some of its rows that was stopped. Rows that were not read stay as they are."""
    unasked: Mapping[str, int] = field(default_factory=dict)
    """By table: the copy that no signal asked for, whose beginning was told and whose end was not."""

    def is_paused(self, table: TableId) -> bool:
        return ALL_PAUSED in self.paused or str(table) in self.paused

    def with_order(self, id_: str, copies: OrderedCopies | None) -> Snapshots:
        """With, or without, the order of a signal."""
        left = {each: found for each, found in self.orders.items() if each != id_}
        return replace(self, orders={**left, id_: copies} if copies is not None else left)


class SnapshotsFile:
    """`snapshots.json`. The connector writes it; any process reads it."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def load(self) -> Snapshots:
        found: dict[str, Any] = read_json(self._path) or {"orders": {}, "paused": []}
        orders = {
            id_: OrderedCopies(each["copies"], tuple(each["told"]), tuple(each.get("parts", ())))
            for id_, each in found["orders"].items()
        }
        return Snapshots(orders, frozenset(found["paused"]), found.get("cut_short", {}), found.get("unasked", {}))

    def store(self, snapshots: Snapshots) -> None:
        """Durable when this returns."""
        orders = {id_: asdict(each) for id_, each in snapshots.orders.items()}
        tables = {"cut_short": dict(snapshots.cut_short), "unasked": dict(snapshots.unasked)}
        write_json(self._path, {"orders": orders, "paused": sorted(snapshots.paused), **tables})
