"""What the log has of one table in a range of transactions, from its index alone: no record is decoded."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from tailrace.changes.decoding import Changes
from tailrace.changes.shape import TableShape, shape_of
from tailrace.log.reader import LogReader
from tailrace.model.change import Decode
from tailrace.model.table import TableId, TableSchema


@dataclass(frozen=True)
class LoggedTable:
    """All that planning needs of one table's changes, so that the log is asked once."""

    changes: Changes
    """Where they lie, and the shape in which they come."""
    parts: tuple[TableSchema, ...]
    """The parts of the table that its rows came from, up to the end of the range."""
    made: tuple[TableSchema, ...]
    """Those of them that one of these transactions filled and may have made."""


def logged_table(
    reader: LogReader, table: TableId, relation: int, between: tuple[int, int], decode: Decode, range_bytes: int
) -> LoggedTable | None:
    """The table's part of transactions after < seq <= upto (`between`), to be read in parts of about this size; None if
    the log never saw the table."""
    shape = shape_between(reader, table, between, decode, relation)
    if shape is None:
        return None
    parts = parts_told(reader, relation, between[1])
    changes = Changes.of(reader, shape, between, range_bytes)
    return LoggedTable(changes, tuple(parts), tuple(parts_made(reader, parts, between)))


def parts_told(reader: LogReader, relation: int, upto: int) -> list[TableSchema]:
    """The parts of a table that changes up to a transaction came from, as far as the log has what announced them."""
    end = _end_position(reader, upto)
    return [each.schema for each in reader.parts(relation) if each.since < end]


def parts_made(reader: LogReader, parts: Collection[TableSchema], between: tuple[int, int]) -> list[TableSchema]:
    """Those of the parts that one of the transactions after < seq <= upto (`between`) filled and may have made."""
    after, upto = between
    parts = [each for each in parts if each.made_by]
    made = np.array([each.made_by for each in parts], np.uint64)
    found = [rows["xid"][np.isin(rows["xid"], made)] for rows, _ in reader.portions(after, upto)] if parts else []
    xids = {xid for each in found for xid in each.tolist()}
    return [each for each in parts if each.made_by in xids]


def touched_shape(
    reader: LogReader, table: TableId, between: tuple[int, int], decode: Decode, relation: int | None = None
) -> TableShape | None:
    """The table's shape if transactions after < seq <= upto (`between`) touched it.

    Without `relation`, the newest of that name counts.
    """
    after, upto = between
    if after >= upto or (relation is not None and relation not in reader.relations(after, upto)):
        return None
    shape = shape_between(reader, table, between, decode, relation)
    return shape if shape is not None and shape.relations & reader.relations(after, upto) else None


def shape_between(
    reader: LogReader, table: TableId, between: tuple[int, int], decode: Decode, relation: int | None = None
) -> TableShape | None:
    """The table's shape for a read of transactions after < seq <= upto (`between`); None if the log never saw it."""
    after, upto = between
    positions = _end_position(reader, after), _end_position(reader, upto)
    return shape_of(reader.schemas(relation), table, positions, decode, relation)


def _end_position(reader: LogReader, seq: int) -> int:
    """Where transaction `seq` ends in the log; 0 for one the log no longer has."""
    if seq < reader.oldest_seq:
        return 0
    return int(reader.transactions(seq - 1, seq).column("commit_position")[0].as_py()) + 1
