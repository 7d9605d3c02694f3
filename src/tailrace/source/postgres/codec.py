"""PostgresCodec: what stored values of a Postgres source mean. Pure, and loads no driver."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId, TableSchema
from tailrace.offsets.layout import Wire
from tailrace.offsets.layouts.postgres import LAYOUT
from tailrace.source.door.codec import Codec
from tailrace.source.door.offsets import LogEnd, OffsetWords
from tailrace.source.door.values import Chunk
from tailrace.source.door.values import Definition as StoredDefinition
from tailrace.source.postgres.catalog.definition import Definition, is_same_shape, renewed
from tailrace.source.postgres.catalog.verdict import why_copy, why_part
from tailrace.source.postgres.rows.visibility import unseen
from tailrace.source.postgres.server.history import GAP_DETAIL
from tailrace.source.postgres.server.lsn import Lsn
from tailrace.source.postgres.values.row_changes import decode

_POSITIONS = ("lsn_commit", "lsn_proc", "lsn")


def _emit(end: LogEnd) -> dict[str, Any]:
    found: dict[str, Any] = {"lsn": end.ordinal, "lsn_proc": end.ordinal}
    if end.commit_end_ordinal:
        found |= {"lsn_commit": end.commit_end_ordinal, "txId": end.xid, "ts_usec": end.time_us}
    if end.is_copying:
        found |= {"snapshot": "INITIAL", "last_snapshot_record": False, "snapshot_completed": False}
    return found


def _positions(offset: Wire) -> dict[str, int]:
    return {name: offset[name] for name in _POSITIONS if offset.get(name)}


def _skip(claim: Mapping[str, Any], to: SourcePosition | None) -> Mapping[str, Any]:
    kept = {name: value for name, value in claim.items() if name != "skip_to"}
    return kept if to is None else {**kept, "skip_to": to.ordinal}


_WORDS = OffsetWords(LAYOUT, _emit, _positions, _skip)


class PostgresCodec(Codec):
    """A position's ordinal is an LSN, with the number of a history in front (`server.history`)."""

    kind: ClassVar[str] = "postgres"
    offset_words: ClassVar[OffsetWords] = _WORDS
    decode = staticmethod(decode)
    unseen = staticmethod(unseen)
    is_same_shape = staticmethod(is_same_shape)

    @staticmethod
    def parse(text: str) -> SourcePosition:
        return SourcePosition(Lsn.parse(text))

    @staticmethod
    def format(position: SourcePosition) -> str:
        return str(Lsn(position.ordinal))

    @staticmethod
    def shown_up_to(position: SourcePosition) -> int:
        """A slot's exported snapshot shows exactly the commits whose record lies before its LSN."""
        return position.ordinal - 1

    @staticmethod
    def is_gap(position: SourcePosition) -> bool:
        return position.detail == GAP_DETAIL

    @staticmethod
    def renewed(definition: StoredDefinition) -> StoredDefinition:
        return renewed(Definition.from_json(definition)).to_json()

    @staticmethod
    def why_copy(old: StoredDefinition, new: StoredDefinition) -> str | None:
        return why_copy(Definition.from_json(old), Definition.from_json(new))

    @staticmethod
    def why_part(old: StoredDefinition, now: StoredDefinition, part: TableSchema) -> str | None:
        return why_part(Definition.from_json(old), Definition.from_json(now), part)

    @staticmethod
    def filtered(chunk: Chunk, condition: str) -> Chunk:
        return replace(chunk, condition=condition)

    @staticmethod
    def rows_query(table: TableId, condition: str | None) -> str:
        names = ".".join(_identifier(each) for each in (table.namespace, table.name))
        return f"select * from {names}" + ("" if condition is None else f" where ({condition})")


def _identifier(name: str) -> str:
    """Quoted where a person would have to."""
    if re.fullmatch(r"[a-z_][a-z0-9_]*", name):
        return name
    return '"' + name.replace('"', '""') + '"'
