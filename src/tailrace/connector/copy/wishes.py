"""How people want tables to be copied: what signals have asked for, as long as they are open.

In memory only. Who asks keeps it on disk, and asks again after a start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tailrace.errors import DefiniteError
from tailrace.model.rows.text_key import TextKey, text_keyed
from tailrace.model.table import TableId
from tailrace.source.door.source import Source


@dataclass(frozen=True)
class CopyWish:
    """How a table is to be copied."""

    copy: int
    """The number of the copy that was asked for."""
    surrogate_key: str | None = None
    """A column to read the rows in the order of."""
    condition: str | None = None
    """The rows to read again, in that copy. Later ones read all."""
    at_once: bool = False
    """At once, although the table could be copied by windows."""


class Wishes:
    """Who asks calls it, and the copies look. One thread."""

    def __init__(self) -> None:
        self._wishes: dict[TableId, CopyWish] = {}
        self._cut_short: dict[TableId, int] = {}
        self._is_paused: Callable[[TableId], bool] = lambda table: False

    def wish(self, table: TableId, wish: CopyWish) -> None:
        """The last one counts."""
        self._wishes[table] = wish

    def withdraw(self, table: TableId) -> None:
        self._wishes.pop(table, None)

    def cut_short(self, copies: Mapping[TableId, int]) -> None:
        """Of these tables, in the copies of these numbers, no more rows are to be read; of all others, again."""
        self._cut_short = dict(copies)

    def pause_if(self, is_paused: Callable[[TableId], bool]) -> None:
        """Copies of tables for which this is true wait. It is asked again and again."""
        self._is_paused = is_paused

    def of(self, table: TableId) -> CopyWish | None:
        return self._wishes.get(table)

    def is_cut_short(self, table: TableId, copy: int) -> bool:
        return self._cut_short.get(table) == copy

    def is_waiting(self, table: TableId, copy: int) -> bool:
        """The copy is paused, and there is something left of it to read."""
        return self._is_paused(table) and not self.is_cut_short(table, copy)


def why_not(source: Source, table: TableId, wish: CopyWish, text_key: TextKey | None) -> str | None:
    """Why rows of a table cannot be read so, found by reading one of them; None if they can."""
    is_plain = wish.condition is None and wish.surrogate_key is None
    described = {} if is_plain else source.describe([table])
    if table not in described or not described[table].schema.key:
        return None
    order = () if wish.surrogate_key is None else (wish.surrogate_key,)
    schema = text_keyed(described[table].schema, text_key)
    try:
        with source.window() as point:
            source.last_key(point, described[table], order)
            for chunk in source.key_chunks(point, described[table], (None, None), 1, 1, order):
                chosen = chunk if wish.condition is None else source.filtered(chunk, wish.condition)
                list(source.read_chunk(point, chosen, schema))
    except DefiniteError as error:
        return error.message
    return None
