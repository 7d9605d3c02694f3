"""How tables begin to grow by windows: from nothing, or from where a copy was when it stopped."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from tailrace.connector.copy._growing_table import GrowingTable
from tailrace.connector.copy._window_reader import ready
from tailrace.connector.copy.growth import Growth
from tailrace.connector.publish.applier import LakeParts, require_same_history
from tailrace.connector.publish.live_table import named
from tailrace.errors import DefiniteError, ResyncError, TailraceError
from tailrace.failpoint import failpoint
from tailrace.lake.door import LakeTable, TableVersion
from tailrace.lake.stamp import Stamp
from tailrace.log.reader import LogReader
from tailrace.model.exact import is_ours
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId, TableSchema
from tailrace.model.text_key import text_keyed
from tailrace.source.door.codec import Codec
from tailrace.source.door.rows import Cursor, Rows, WindowPoint
from tailrace.source.door.source import Database
from tailrace.source.door.values import Claim, Definition, SourceTable, View, Waiting

PORTION = 100_000
"""Transactions that are looked at together."""


@dataclass(frozen=True)
class Beginning:
    """What it takes."""

    parts: LakeParts
    source: Database
    claim: Claim

    def stored(self, table: TableId) -> LakeTable:
        return self.parts.format.table(self.parts.home.table_path(table))


@dataclass(frozen=True)
class Start:
    """Which copy of a table is begun, and how."""

    copy: int
    order: tuple[str, ...] = ()
    """Columns to go by instead of the key."""
    condition: str | None = None
    """Which rows are to be read; the others stay as they are in the copy before."""
    has_rows: bool = True
    """Otherwise none is read."""
    is_cut_short: bool = False
    """None is read, because the copy was stopped; those of the copy before stay. It must be there."""


Begun = Mapping[TableId, "GrowingTable | TailraceError"]
"""The tables, or why they cannot be copied."""


def resume(beginning: Beginning, reader: LogReader, tables: Mapping[TableId, Start]) -> Begun:
    """Those of the tables whose copy was begun before."""
    found: dict[TableId, GrowingTable | TailraceError] = {}
    for table, start in tables.items():
        try:
            version = beginning.stored(table).version()
            if version and version.stamp and version.stamp.copy == start.copy and version.stamp.growth is not None:
                found[table] = _resumed(beginning, reader, table, version)
        except DefiniteError as error:
            found[table] = error
    return found


def _resumed(beginning: Beginning, reader: LogReader, table: TableId, version: TableVersion) -> GrowingTable:
    stamp = version.stamp
    assert stamp is not None
    assert stamp.seq is not None
    require_same_history(beginning.parts.codec, reader, table, stamp)
    if stamp.seq > reader.head.seq:
        raise ResyncError.of(table, f"it is at transaction {stamp.seq}, but the log ends at {reader.head.seq}")
    if stamp.seq < reader.oldest_seq - 1:
        text = beginning.parts.codec.format(stamp.position)
        raise ResyncError.of(table, f"the log no longer has what follows {text}")
    known = beginning.parts.home.tables.load()[table]
    found = _growing(beginning, table, version, Growth.from_json(stamp.growth), known.definition)
    return replace(found, text_key=known.text_key)


def begin(
    beginning: Beginning,
    reader: LogReader,
    tables: Mapping[TableId, Start],
    waiting: Waiting,
    await_log: Callable[[SourcePosition], None],
) -> Begun:
    """Empty, at the last transaction such that it and all before it show in one state of the source. The greatest keys
    are that state's: what has a greater one later, the stream brings. A transient error leaves all of them for another
    time."""
    source = beginning.source
    source.settle(list(tables), waiting)
    with source.window(waiting) as point:
        described = source.describe(list(tables))
        records = beginning.parts.home.tables.load()
        found = source.define(beginning.claim, {table: records[table].definition for table in tables})
        defined = {table: text_keyed(schema, records[table].text_key) for table, schema in found.items()}
        lasts = {
            table: _last_key(source, point, start, partial(ready, table, described, defined))
            for table, start in tables.items()
        }
    await_log(point.position)
    upto = reader.seq_at(point.position.ordinal)
    missed = unseen(beginning.parts.codec, reader, point.view, (reader.oldest_seq - 1, upto))
    seq = int(missed.min()) - 1 if len(missed) else upto
    begun: dict[TableId, GrowingTable | TailraceError] = {}
    for table, last in lasts.items():
        if isinstance(last, TailraceError):
            begun[table] = last
            continue
        try:
            growth = Growth(last, rows_estimated=described[table].rows_estimated)
            one = _begin_one(beginning, reader, defined[table], (tables[table], growth, seq))
            begun[table] = replace(one, text_key=records[table].text_key)
        except DefiniteError as error:
            begun[table] = error
    return begun


def _begin_one(
    beginning: Beginning, reader: LogReader, schema: TableSchema, at: tuple[Start, Growth, int]
) -> GrowingTable:
    start, growth, seq = at
    stored = beginning.stored(schema.table)
    kept = _kept(beginning, schema, start) if start.condition is not None else None
    kept = None if kept is not None and kept < reader.oldest_seq - 1 else kept
    if start.is_cut_short and kept is None:
        raise was_stopped(schema.table)
    growth = replace(growth, order=start.order, condition=start.condition if kept is not None else None)
    seq = seq if kept is None else kept
    stamp = Stamp(reader.position_of(seq), schema.relation, start.copy, seq, growth.to_json())
    draft = stored.copy(schema, stamp) if kept is None else stored.publish(schema, stamp, is_growing=True)
    version = TableVersion(draft.commit([]), stamp)
    failpoint("window.begun")
    return _growing(beginning, schema.table, version, growth, schema.definition)


def was_stopped(table: TableId) -> DefiniteError:
    """For a copy that was stopped before it had all rows."""
    return DefiniteError(
        f"{table}: a signal stopped its copy", f"to copy it: tailrace tables resync LAKE {table}", str(table)
    )


def _kept(beginning: Beginning, schema: TableSchema, start: Start) -> int | None:
    """The transaction that the copy before stands at, if it is there as the newest cut that has it names it; None if
    all rows have to be read."""
    table, stored = schema.table, beginning.stored(schema.table)
    version = stored.version()
    cut = beginning.parts.home.cuts.newest(lambda each: str(table) in each.tables)
    if version is None or version.stamp is None or cut is None:
        return None
    named_in_cut = cut.tables[str(table)]
    is_same = version.stamp.is_of(named_in_cut) and named_in_cut.copy == start.copy - 1
    columns = {(column.name, column.type) for column in stored.columns(version.number) if not is_ours(column)}
    has_shape = columns == {(column.name, column.type) for column in schema.columns}
    return cut.seq if is_same and has_shape else None


def _last_key(
    source: Rows, point: WindowPoint, start: Start, found: Callable[[], SourceTable]
) -> Cursor | TailraceError | None:
    try:
        table = found()
        return source.last_key(point, table, start.order) if start.has_rows and not start.is_cut_short else None
    except (DefiniteError, ResyncError) as error:
        return error


def _growing(
    beginning: Beginning, table: TableId, version: TableVersion, growth: Growth, definition: Definition | None
) -> GrowingTable:
    stamp = version.stamp
    assert stamp is not None
    assert stamp.seq is not None
    return GrowingTable(
        table=table,
        relation=stamp.relation,
        stored=beginning.stored(table),
        decode=beginning.parts.codec.decode,
        why_copy=beginning.parts.codec.why_copy,
        why_part=beginning.parts.codec.why_part,
        seq=stamp.seq,
        standing=named(version.number, stamp),
        durable=None,
        floor=stamp.position,
        definition=definition,
        growth=growth,
        durable_seq=stamp.seq,
        stamp=stamp,
    )


def unseen(codec: type[Codec], reader: LogReader, view: View, between: tuple[int, int]) -> np.ndarray:
    """The transactions after < seq <= upto (`between`) that a view does not show."""
    after, upto = between
    found = [np.empty(0, np.int64)]
    for begin_ in range(after, upto, PORTION):
        transactions = reader.transactions(begin_, min(upto, begin_ + PORTION))
        found.append(transactions.column("seq").to_numpy()[codec.unseen(view, transactions)])
    return np.concatenate(found)
