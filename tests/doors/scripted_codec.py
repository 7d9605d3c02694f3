"""What stored values of a scripted source mean.

Its positions are no LSNs (every tenth number, shown as `@120`, with a GTID-like detail), and its payloads are JSON.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from tests.doors import feed
from tests.doors.scripted_offsets import WORDS

from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId, TableSchema
from tailrace.source.door.codec import Codec
from tailrace.source.door.offsets import OffsetWords
from tailrace.source.door.values import Definition, View

_TEXT = re.compile(r"@(\d+)")


class ScriptedCodec(Codec):
    """A script has no gaps and no partitions, and a new copy has the types of the old one: the door's own answers."""

    kind: ClassVar[str] = "scripted"
    offset_words: ClassVar[OffsetWords] = WORDS

    @staticmethod
    def decode(records: Any, schema: TableSchema) -> pa.RecordBatch:
        return feed.decode(records, schema)

    @staticmethod
    def parse(text: str) -> SourcePosition:
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is no position: it looks like @120")
        return SourcePosition(int(match[1]))

    @staticmethod
    def format(position: SourcePosition) -> str:
        return f"@{position.ordinal}"

    @staticmethod
    def shown_up_to(position: SourcePosition) -> int:
        return position.ordinal

    @staticmethod
    def unseen(view: View, transactions: pa.Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return np.asarray(transactions.column("commit_ordinal").to_numpy() > view["ordinal"])

    @staticmethod
    def why_copy(old: Definition, new: Definition) -> str | None:
        """Everything can be followed but another type, another key and what the script calls a rewrite."""
        if new["version"] <= old["version"]:
            return None
        types = dict(old["types"])
        for number, type_ in new["types"]:
            if types.get(number, type_) != type_:
                return f"column {number} was {types[number]} and is now {type_}"
        return "it was rewritten" if (old["rewrites"], old["key"]) != (new["rewrites"], new["key"]) else None

    @staticmethod
    def filtered(chunk: Any, condition: str) -> Any:
        """A condition is written `column = JSON`."""
        return replace(chunk, condition=condition)

    @staticmethod
    def rows_query(table: TableId, condition: str | None) -> str:
        return f"rows of {table}" if condition is None else f"rows of {table} with {condition}"

    @staticmethod
    def is_same_shape(old: Definition, new: Definition) -> bool:
        return bool(old["version"] == new["version"])
