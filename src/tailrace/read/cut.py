"""Cuts to read: all tables of a lake as of one commit of the source, in Spark or in DuckDB.

A commit that has been published is read from the lake alone. Any other is the newest published cut before it, with
the log's changes up to it laid over. Both sides never change once written, so a cut stays what it is however long it
is used. A table is opened when it is first asked for, and a table in trouble troubles only those who ask for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, overload

import pyarrow as pa

from tailrace.errors import DefiniteError
from tailrace.lake.door import LakeTable, UnfitSessionError
from tailrace.lake.formats import format_named
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.cut import CutTable, PublishedCut
from tailrace.model.lake_address import LakeAddress
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId
from tailrace.model.table_state import TableState
from tailrace.read._engine import Frame, ReadEngine, engine_of
from tailrace.read._points import (
    Point,
    last_move,
    newest_base,
    parse_point,
    require_published,
    wanted_seq,
    with_tables_that_left,
)
from tailrace.read._tables import CutTables
from tailrace.read.names import TableNames
from tailrace.source.door.codec import Codec
from tailrace.source.kinds import codec_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection, DuckDBPyRelation
    from pyspark.sql import DataFrame, SparkSession


NO_HOME = "the lake's home is not on this machine: what was committed after this cut is not shown"
_SHOW_TABLES = re.compile(r"\s*show\s+tables[\s;]*", re.IGNORECASE)


@dataclass(frozen=True)
class Cut(Generic[Frame]):
    """All tables as of one commit."""

    seq: int
    position: SourcePosition
    text: str
    """The position as the source writes it."""
    commit_time: datetime
    tables: CutTables[Frame]
    """By `namespace.name`; those in error or being copied are not there, and say why when asked for."""
    engine: ReadEngine[Frame]
    note: str | None = None
    """What a reader should know of it."""

    def sql(self, query: str) -> Frame:
        """Run the engine's SQL over this cut's tables, named as in the source. Opens those that the query names. A
        definite error for a name that several tables have. `show tables` lists those that can be read."""
        if _SHOW_TABLES.fullmatch(query):
            return self.engine.of_arrow(pa.table({"name": pa.array(sorted(self.tables), pa.string())}))
        names = TableNames(self.tables.known, self.engine.dialect)
        named = names.read(query)
        if named is None:
            # The engine understands more than we do, and has the better error message.
            self.register()
            return self.engine.sql(query)
        for table in named.tables:
            self._register(table, names.views(table))
        return self.engine.sql(named.text)

    def register(self) -> None:
        """Make all tables known to the session as temporary views: `namespace.name` as one quoted word, and `name`
        alone where no other table has it, in any case. A table that cannot be shown is not there, not even as an older
        cut's view."""
        names = TableNames(self.tables.known, self.engine.dialect)
        shown = set()
        for table in self.tables.known:
            try:
                self._register(table, names.views(table))
            except UnfitSessionError:
                raise
            except DefiniteError:
                continue
            shown |= {view.lower() for view in names.views(table)}
        for view in names.all - shown:
            self.engine.hide(view)

    def _register(self, table: TableId, views: list[str]) -> None:
        frame = self.tables[str(table)]
        for view in views:
            self.engine.show(view, frame)


@overload
def cut(
    session: SparkSession,
    lake: str | LakeAddress,
    *,
    published: bool = ...,
    as_of: str | Point | None = ...,
    register: bool = ...,
) -> Cut[DataFrame]: ...


@overload
def cut(
    session: DuckDBPyConnection,
    lake: str | LakeAddress,
    *,
    published: bool = ...,
    as_of: str | Point | None = ...,
    register: bool = ...,
) -> Cut[DuckDBPyRelation]: ...


def cut(
    session: SparkSession | DuckDBPyConnection,
    lake: str | LakeAddress,
    *,
    published: bool = False,
    as_of: str | Point | None = None,
    register: bool = True,
) -> Cut[Any]:
    """One cut: the newest commit, the last published one, or the state as of a source position or a time.

    With `register`, its tables are the session's temporary views. Where the home of a lake is not on this machine, only
    published cuts can be had, and `Cut.note` says so.
    """
    found = cut_of(session, LakeHome.find(lake), published=published, as_of=as_of)
    if register:
        found.register()
    return found


def cut_of(session: Any, home: LakeHome, *, published: bool = False, as_of: str | Point | None = None) -> Cut[Any]:
    """One cut of a lake that was found; registers nothing."""
    return cut_by(engine_of(session), home, published=published, as_of=as_of)


def cut_by(
    engine: ReadEngine[Frame], home: LakeHome, *, published: bool = False, as_of: str | Point | None = None
) -> Cut[Frame]:
    """The same, shown by this engine."""
    reader, codec = _log_of(home), _codec_of(home)
    point = parse_point(as_of, codec) if isinstance(as_of, str) else as_of
    seq = wanted_seq(home, reader, point, codec) if reader is not None and not published else None
    base = newest_base(home, seq, point)
    if base is None:
        if as_of is None:
            raise _unpublished(home)
        raise DefiniteError(f"the lake has no cut as old as {as_of}", "ask for a later point")
    if reader is None and point is not None:
        require_published(home, base, point, codec)
    if reader is not None and seq is not None:
        base = engine.base_for(reader, home.cuts, base, seq, partial(last_move, home, base))
    if point is not None and (reader is None or seq == base.seq):
        base = with_tables_that_left(home, base)
    return _assemble(engine, home, reader, base, base.seq if seq is None else seq)


def _unpublished(home: LakeHome) -> DefiniteError:
    """Why there is no cut. Waiting does not help where every table is in error."""
    chosen = {t: r for t, r in home.tables.load().items() if r.state is not TableState.REMOVED}
    if not chosen or any(record.state is not TableState.ERRORED for record in chosen.values()):
        return DefiniteError("nothing has been published yet", "wait until the snapshot is done")
    reasons = "; ".join(f"{table}: {record.reason}" for table, record in chosen.items())
    hints = [record.hint for record in chosen.values() if record.hint]
    return DefiniteError(f"nothing has been published: every table is in error: {reasons}", "\n".join(hints) or None)


def cut_as_it_lies(session: Any, lake: str | LakeAddress, position: SourcePosition) -> Cut[Any]:
    """Exactly what a snapshot of the source at `position` shows. The log must have got there.

    The caller looks at the tables' definitions before and after. Each published version counts with what other writers
    have made of it since: it is what a plain reader of the table finds, and what the next publish builds on.
    """
    home, reader = _with_log(lake)
    codec = _codec_of(home)
    seq = seq_shown(lake, position)
    base = home.cuts.newest(lambda cut: cut.seq <= seq and cut.position <= position)
    if base is None:
        raise DefiniteError(f"the lake has no cut as old as {codec.format(position)}", "wait until a sync made one")
    return _assemble(engine_of(session), home, reader, _with_other_writers(home, base), seq, is_vouched=False)


def seq_shown(lake: str | LakeAddress, position: SourcePosition) -> int:
    """The last transaction of the log that a snapshot of the source at `position` shows. The log must have got
    there."""
    home, reader = _with_log(lake)
    return reader.seq_at(_codec_of(home).shown_up_to(position))


def _with_log(lake: str | LakeAddress) -> tuple[LakeHome, LogReader]:
    home = LakeHome.find(lake)
    reader = _log_of(home)
    if reader is None:
        raise DefiniteError(f"the home of {lake} is not on this machine", "ask where tailrace sync runs")
    return home, reader


def _log_of(home: LakeHome) -> LogReader | None:
    """None where the lake's home is not on this machine, or only one that the lake has left behind."""
    if home.is_inside:
        if not home.log.is_dir():
            raise DefiniteError(f"{home.lake} has no log yet", "run tailrace sync first")
        return LogReader(home.log)
    if not home.has_log:
        return None
    # The cut first: a log that belongs to it has all that it has.
    newest, reader = home.cuts.newest(), LogReader(home.log)
    return None if newest is not None and reader.head.seq < newest.seq else reader


def _codec_of(home: LakeHome) -> type[Codec]:
    record = home.source()
    assert record is not None
    return codec_of(record.kind)


def _with_other_writers(home: LakeHome, base: PublishedCut) -> PublishedCut:
    record = home.source()
    assert record is not None
    tables = dict(base.tables)
    for table in home.tables.load():
        named = tables.get(str(table))
        if named is not None:
            stored = format_named(record.format).table(home.place_of(table))
            tables[str(table)] = replace(named, version=_last_of(stored, named))
    return replace(base, tables=tables)


def _last_of(stored: LakeTable, named: CutTable) -> int:
    """The last version before our next one: others' versions pass the stamp on."""
    number = named.version
    while (after := stored.version(number + 1)) is not None and after.stamp is not None and after.stamp.is_of(named):
        number += 1
    return number


def arrow(
    lake: str | LakeAddress, table: str, *, published: bool = False, as_of: str | Point | None = None
) -> pa.Table:
    """The rows of one table, `namespace.name` or `name` where only one has it, at one cut. Needs no Spark."""
    from tailrace.read.duckdb import connect

    name = str(LakeHome.find(lake).table_named(table))
    with connect(is_private=True) as connection:
        return cut(connection, lake, published=published, as_of=as_of, register=False).tables[name].to_arrow_table()


def _assemble(
    engine: ReadEngine[Frame],
    home: LakeHome,
    reader: LogReader | None,
    base: PublishedCut,
    seq: int,
    *,
    is_vouched: bool = True,
) -> Cut[Frame]:
    codec, position = _codec_of(home), base.position
    if reader is not None and seq > base.seq:
        if base.seq + 1 < reader.oldest_seq:
            start = codec.format(base.position)
            raise DefiniteError(f"the log no longer has the changes after {start}", "ask for a published cut")
        position = max(position, reader.position_of(seq))
    time = datetime.fromtimestamp(position.time_us / 1_000_000, UTC)
    tables = CutTables(engine, home, reader, base, seq, is_vouched=is_vouched)
    return Cut(seq, position, codec.format(position), time, tables, engine, NO_HOME if reader is None else None)
