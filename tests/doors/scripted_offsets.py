"""Offsets of the scripted source: one number, in a layout of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.doors.history import History

from tailrace.errors import DefiniteError
from tailrace.model.position import SourcePosition
from tailrace.offsets.attributes import ORDERS, SHARED_FIELDS, SHARED_RULES
from tailrace.offsets.codecs import LONG, TEXT
from tailrace.offsets.layout import Layout, OffsetField
from tailrace.source.door.offsets import Adopted, Counted, OffsetWords, Served

LAYOUT = Layout(
    "scripted",
    "one partition; the ordinal that everything before has been read of",
    (OffsetField("server", TEXT, "any name", required=True),),
    (OffsetField("ordinal", LONG, "the position", required=True), *SHARED_FIELDS),
    (ORDERS,),
    SHARED_RULES,
    example={"partition": {"server": "shop"}, "offset": {"ordinal": 120}},
)


def _skip(claim: Mapping[str, Any], to: SourcePosition | None) -> Mapping[str, Any]:
    kept = {name: value for name, value in claim.items() if name != "skip_to"}
    return kept if to is None else {**kept, "skip_to": to.ordinal}


WORDS = OffsetWords(
    LAYOUT, lambda end: {"ordinal": end.ordinal}, lambda offset: {"ordinal": offset["ordinal"]} if offset else {}, _skip
)


class ScriptedOffsets:
    """Implements `SourceOffsets`. A script keeps everything since it was claimed."""

    def __init__(
        self, history: Callable[[], History], transactions: Callable[[], list[int]], adopt: str | None
    ) -> None:
        self._history = history
        self._transactions = transactions
        self._adopt = adopt

    def served(self, claim: Mapping[str, Any]) -> Served:
        history = self._history()
        kept = history.claims.get(claim["name"])
        problem = f"nothing is kept for {claim['name']}" if kept is None else None
        return Served(None if kept is None else SourcePosition(kept), history.position, problem)

    def count(self, claim: Mapping[str, Any], after: int, upto: SourcePosition) -> Counted | None:
        return Counted(sum(after < each < upto.ordinal for each in self._transactions()))

    def adopt(self, claim: Mapping[str, Any] | None) -> Adopted:
        if self._adopt is None:
            raise DefiniteError("which claim is to be taken over?", "name one")
        taken = {"server": self._history().server, "name": self._adopt}
        return Adopted(taken, claim, sends_alike=True)
