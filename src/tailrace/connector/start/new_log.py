"""A new log for a lake whose log is gone, with the home it lay in. Nothing is lost by that where the source has been
told only of what cuts have (`lake/records/confirmed.py`):

    source   … t5   t6   t7   t8        told: up to t6, and still sends what follows
    lake     the newest cut: t6         one table has t7, as its connector died before the next cut
    new log            │ t7   t8

The new log counts on from the highest number that any version of the lake has, so that no number of the old log means
another transaction of the new one. What tells where a table stands in it is its position.

Copies that were under way begin again: the changes beside them were in the old log. So does a table that the newest cut
is without: the source was told of that cut, and sends nothing again that the table lacks.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

from tailrace.errors import DefiniteError
from tailrace.lake.door import LakeFormat
from tailrace.lake.home import LakeHome
from tailrace.lake.stamp import Stamp
from tailrace.log.ledger.ledger import Base
from tailrace.log.reader import LogReader
from tailrace.log.write.writer import LogOptions, LogWriter
from tailrace.model.cut import PublishedCut
from tailrace.model.position import START, SourcePosition
from tailrace.model.table import TableId

LOOKS_AT_ONCE = 8


def begin_after_cut(
    home: LakeHome, lake_format: LakeFormat, identity: Mapping[str, str], options: LogOptions
) -> PublishedCut | None:
    """Begin the log after the newest cut, which this returns without the tables that do not have the version that it
    names. None, and nothing is begun, where there is no cut or the source may have been told of more. Can be done again
    until the log has been written to."""
    cut, confirmed = home.cuts.newest(), home.confirmed.load()
    if cut is None or confirmed is None:
        return None
    with ThreadPoolExecutor(LOOKS_AT_ONCE, "stamps") as pool:
        stamps = list(
            pool.map(lambda table: _stamps(home, lake_format, table, cut), tables := list(home.tables.load()))
        )
    base = base_after(
        cut, confirmed.ordinal, (each for newest, _ in stamps for each in newest), (each for _, each in stamps)
    )
    LogWriter.open(home.log, identity, options, base=base).close()
    whole = {str(table) for table, (_, in_cut) in zip(tables, stamps, strict=True) if in_cut is not None}
    return replace(cut, tables={name: each for name, each in cut.tables.items() if name in whole})


def require_own_log(home: LakeHome) -> None:
    """A definite error for a home that is back: the lake was continued elsewhere without its log, whose numbers mean
    other transactions than those in the lake now."""
    confirmed = home.confirmed.load() if home.has_log else None
    if confirmed is not None and confirmed.log and confirmed.log != LogReader(home.log).id:
        raise DefiniteError(
            f"{home.lake} was continued without the log in {home.folder}, after that machine was taken for lost",
            f"put it aside, and the lake continues after its newest cut: mv {shlex.quote(str(home.folder))} "
            f"{shlex.quote(f'{home.folder}.old')}",
        )


def base_after(cut: PublishedCut, confirmed: int, newest: Iterable[Stamp], in_cut: Iterable[Stamp | None]) -> Base:
    """Where the log begins, given the stamps of the tables' newest versions, and of those that the cut names."""
    numbers = [stamp.seq or 0 for stamp in newest]
    # One more than the cut where a table is ahead of it: its number is one that the old log gave.
    seq = cut.seq if max(numbers, default=0) <= cut.seq else max(numbers) + 1
    # A stamp with a number has a commit's position, as the source gave it. Every table of the cut has all up to the
    # last of them, so it need not come again; and where the source does send it again, it must be the same.
    commits = [stamp.position for stamp in in_cut if stamp is not None and stamp.seq is not None]
    last = max((each for each in commits if each <= cut.position), default=START)
    received = SourcePosition(max(cut.position.ordinal, confirmed))
    return Base(seq=seq, received=received, last_commit=last, time_max_us=last.time_us)


def _stamps(
    home: LakeHome, lake_format: LakeFormat, table: TableId, cut: PublishedCut
) -> tuple[list[Stamp], Stamp | None]:
    """Of a table's newest version, if it has one, and of the version that the cut names."""
    stored, named = lake_format.table(home.place_of(table)), cut.tables.get(str(table))
    found = []
    in_cut = None
    # A table that cannot be read is copied again.
    with suppress(DefiniteError):
        newest = stored.version()
        found = [newest.stamp] if newest is not None and newest.stamp is not None else []
    with suppress(DefiniteError):
        version = stored.version(named.version) if named is not None else None
        if version is not None and version.stamp is not None and named is not None and version.stamp.is_of(named):
            in_cut = version.stamp
    return found, in_cut
