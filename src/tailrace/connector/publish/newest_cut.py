"""The newest cut of a lake, and what cuts vouch for.

A cut names a version by its number, and by the copy and transaction in its stamp, because numbers are given again. A
table that had nothing to publish in a batch has an older stamp: the newest cut whose version it has says how far it is.
"""

from __future__ import annotations

from functools import cache

from tailrace.connector.publish.following_table import named
from tailrace.errors import DefiniteError, StoreError, TransientError, passing
from tailrace.lake.door import LakeTable, TableVersion
from tailrace.lake.home import LakeHome
from tailrace.log.reader import LogReader
from tailrace.model.cut import CutTable, PublishedCut
from tailrace.model.table import TableId


class NewestCut:
    """One thread."""

    def __init__(self, home: LakeHome) -> None:
        self._file = home.cuts
        self.cut: PublishedCut | None = home.cuts.newest()
        self.trouble: TransientError | None = None
        """Why the last one could not be recorded."""
        self._logged: PublishedCut | None = None
        """The last one that the log was found to have."""

    def record(self, cut: PublishedCut) -> bool:
        """Durable when this is true; false when the disk has no room, or the store does not answer, for a while."""
        try:
            self._file.append(cut)
        except (OSError, StoreError) as error:
            self.trouble = error if isinstance(error, StoreError) else passing(error)
            if self.trouble is None:
                raise
            return False
        self.cut, self.trouble = cut, None
        return True

    def seq_with(self, table: TableId, copy: int) -> int | None:
        """The newest cut's transaction, if this copy of the table is in it."""
        in_cut = self.cut.tables.get(str(table)) if self.cut else None
        return self.cut.seq if self.cut and in_cut and in_cut.copy == copy else None

    def names(self, table: TableId, version: TableVersion) -> bool:
        """Whether the newest cut names just this version."""
        in_cut = self.cut.tables.get(str(table)) if self.cut else None
        return in_cut is not None and version.stamp is not None and in_cut == named(version.number, version.stamp)

    def is_logged(self, reader: LogReader) -> bool:
        """Whether the log has what follows the newest cut. If it still has the cut's own transaction, it must be the
        same one."""
        cut = self.cut
        if cut is None or not reader.oldest_seq - 1 <= cut.seq <= reader.head.seq:
            return False
        if self._logged is not cut:
            is_other = cut.seq >= reader.oldest_seq and reader.position_of(cut.seq) > cut.position
            self._logged = None if is_other else cut
        return self._logged is cut

    def last_with(self, table: TableId, stored: LakeTable) -> PublishedCut | None:
        """The newest cut that names a version which the table has: that number, with that copy and transaction."""

        @cache
        def has(in_cut: CutTable) -> bool:
            try:
                version = stored.version(in_cut.version)
            except DefiniteError:
                return False
            return version is not None and version.stamp is not None and version.stamp.is_of(in_cut)

        def is_wanted(cut: PublishedCut) -> bool:
            return str(table) in cut.tables and has(cut.tables[str(table)])

        return self.cut if self.cut and is_wanted(self.cut) else self._file.newest(is_wanted)
