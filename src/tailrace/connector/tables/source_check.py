"""A look at the source's tables, at the start and every few seconds: which there are, and which can be copied."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence

from tailrace.connector import trouble
from tailrace.connector.control import HeldUpError, RunControl, Waits
from tailrace.connector.events import Event, SourcePrepared
from tailrace.connector.tables.book import TableBook
from tailrace.connector.tables.decisions import Found, decide, decide_unsent
from tailrace.connector.tables.selection import Chooser
from tailrace.lake.records.clean_shutdown import Left
from tailrace.model.position import START, SourcePosition
from tailrace.model.table import TableId, TableSchema
from tailrace.model.table_state import TableRecord, TableState
from tailrace.source.door.source import Source
from tailrace.source.door.stream import Prepared
from tailrace.source.door.values import Claim, SourceTable

WAIT_SECONDS_MAX = 1.0
WHOLE_SECONDS = 60.0
"""How often everything is looked at, though the source says that nothing is new."""
URGENT_SECONDS = 0.2
REST_FACTOR = 4
_AT_REST = (TableState.LIVE, TableState.REMOVED)


class TableLook:
    """Keeps the book of tables in step with the source."""

    def __init__(
        self,
        source: Source,
        chooser: Chooser,
        claim: Claim,
        book: TableBook,
        control: RunControl,
        tell: Callable[[Event], None],
    ) -> None:
        self._chooser = chooser
        self._settings = chooser.settings
        self._source = source
        self._claim = claim
        self._book = book
        self._tell = tell
        self._waits = Waits(control, tell)
        self._due = self._whole_due = self._urgent_due = 0.0
        self._seen: tuple[str, dict[TableId, TableRecord]] | None = None
        """The source's mark before the last look, and the book after it; None where another look may find more."""
        self._mark: str | None = None
        """The source's mark before the last look."""
        self._is_spared = False
        """The first look was not taken, because it would have found nothing new."""
        self._looked_at = 0.0
        """When everything was looked at the last time, by the clock on the wall."""
        self._chosen_at = 0
        """The mark of people's choices before the last look."""

        self.defined: dict[TableId, TableSchema] = {}
        """Shapes and definitions as of the last look."""
        self.rows_estimated: dict[TableId, int] = {}
        self.bytes_estimated: dict[TableId, int] = {}
        """How many rows the tables are thought to have."""
        self.position = START
        """The last look saw everything that was committed before."""

    def begin(self, resume: SourcePosition | None) -> None:
        """The first look, at the start."""
        mark, self._chosen_at = self._source.mark(), self._chooser.mark()
        chosen = self._chooser.tables(self._book.records)
        if self._chooser.passed_over is not None:
            error = self._chooser.passed_over
            self._tell(SourcePrepared([f"{error.message} any more, the others go on: {error.hint}"]))
        held_up = self.take(chosen, resume, starting=True)
        self._saw(mark, held_up)

    def is_still(self, left: Left | None) -> bool:
        """Whether a first look would find what the last run found. It then counts as taken."""
        records = self._book.records
        if left is None or not self._is_at_rest():
            return False
        # First: what was committed up to here shows in the mark.
        position, mark = self._source.now(), self._source.mark()
        self._chosen_at = self._chooser.mark()
        if mark is None or not left.has_look(self._conditions(mark)):
            return False
        self.position, self._looked_at, self._is_spared = position, left.looked_at, True
        self._seen, self._mark, self._whole_due = (mark, records), mark, time.monotonic() + WHOLE_SECONDS
        self._due = time.monotonic() + self._settings.look_at_tables_seconds
        return True

    @property
    def is_wanted(self) -> bool:
        """Before anything is copied: no table has been looked at yet."""
        return self._is_spared and not self._is_at_rest()

    def _is_at_rest(self) -> bool:
        return all(each.state in _AT_REST for each in self._book.records.values())

    def left(self) -> tuple[str | None, float]:
        """What the last look was taken under, and when that was; None if anything was decided since, or if a table has
        yet to follow to what was found: only another look has it do so."""
        if self._seen is None or self._seen[1] != self._book.records or any(map(self.moved, self.defined)):
            return None, 0.0
        return self._conditions(self._seen[0]), self._looked_at

    def _conditions(self, mark: str) -> str:
        """Another text where a look might find something else."""
        chosen = self._settings.tables, self._settings.exclude, self._settings.is_guest, self._chosen_at
        about = [mark, dict(self._claim), chosen, dict(self._source.arguments), self._book.digest()]
        return hashlib.sha256(repr(about).encode()).hexdigest()

    @property
    def found(self) -> tuple[bool, str | None]:
        """Whether every live table is as its copy has it; and the source's mark that says so as long as it is the same,
        if the source has one."""
        is_settled = not any(self.moved(table) for table in self._book.of_state(TableState.LIVE))
        return is_settled, self._mark

    def is_due(self, *, is_urgent: bool = False) -> bool:
        """`is_urgent`: the source's mark has moved, and readers wait for what a look says to it. One that costs much is
        not taken all the time."""
        if is_urgent and time.monotonic() >= self._urgent_due:
            return True
        return time.monotonic() >= self._due or self._chooser.mark() != self._chosen_at or self.is_wanted

    def take_again(self, resume: SourcePosition | None) -> None:
        """While it runs. A pattern that names nothing any more is no error now: its table is gone.

        Where the source's mark is the one of the last look, and no table has another state, it would find the same.
        """
        mark = self._source.mark()
        if self._chooser.mark() != self._chosen_at:
            self._seen = None
        if mark is not None and self._seen == (mark, self._book.records) and time.monotonic() < self._whole_due:
            self._due = time.monotonic() + self._settings.look_at_tables_seconds
            return
        self._seen, begun = None, time.monotonic()
        self._saw(mark, self._take_whole(resume))
        took = time.monotonic() - begun
        self._urgent_due = time.monotonic() + max(URGENT_SECONDS, REST_FACTOR * took)

    def _saw(self, mark: str | None, held_up: set[TableId]) -> None:
        self._mark = mark
        if mark is not None and not held_up:
            self._seen = mark, self._book.records
            self._whole_due, self._looked_at = time.monotonic() + WHOLE_SECONDS, time.time()

    def _take_whole(self, resume: SourcePosition | None) -> set[TableId]:
        self._chosen_at = self._chooser.mark()
        return self.take(self._chooser.tables(self._book.records, starting=False), resume, starting=False)

    def take(self, chosen: Sequence[SourceTable], resume: SourcePosition | None, *, starting: bool) -> set[TableId]:
        """Bring the book up to date with what the source says, and the source with what is chosen. Returns the tables
        that another process holds up."""
        names = {each.table for each in chosen}
        self.rows_estimated = {each.table: each.rows_estimated for each in chosen}
        self.bytes_estimated = {each.table: each.rows_estimated * (each.row_bytes_estimated or 0) for each in chosen}
        absent = [t for t, r in self._book.records.items() if t not in names and r.state is not TableState.REMOVED]
        gone = set(self._chooser.wanted(absent)) - set(self._source.describe(absent)) if absent else set()
        sendable = {each.table for each in chosen if each.problem is None}
        unsent = self._source.unsent(self._claim, list(sendable))
        # Written down before the source is changed: afterwards nothing would show the gap.
        self._book.set(decide_unsent(self._book.records, unsent))
        prepared, held_up = self._prepare(sendable, unsent, resume, starting=starting)
        records = self._book.records
        known = {table: records[table].definition if table in records else None for table in sendable - held_up}
        self.defined, self._is_spared = self._source.define(self._claim, known), False
        found = Found(chosen, gone, prepared.refused, self.defined, self._source.why_copy)
        decided = decide(records, found, starting=starting)
        self._book.set({table: record for table, record in decided.items() if table not in held_up})
        self.position = self._source.now()
        self._due = time.monotonic() + self._settings.look_at_tables_seconds
        return held_up

    def _prepare(
        self, tables: set[TableId], unsent: set[TableId], resume: SourcePosition | None, *, starting: bool
    ) -> tuple[Prepared, set[TableId]]:
        """Let the source send the tables. Later looks are taken before a cut of the others, which must not wait: what
        another process holds up then is left for the next look."""
        try:
            waiting = self._waits if starting else self._waits.at_most(WAIT_SECONDS_MAX)
            if starting and self._settings.once:
                waiting = self._waits.at_most(trouble.PATIENCE_SECONDS)
            guest = self._settings.is_guest
            prepared = self._source.prepare(self._claim, sorted(tables), resume, waiting, keeps_others=guest)
        except HeldUpError:
            if starting:
                raise
            return Prepared([], {}), unsent
        self._waits.over()
        if prepared.done:
            self._tell(SourcePrepared(prepared.done))
        return prepared, set()

    def moved(self, table: TableId) -> TableSchema | None:
        """The shape of a table whose definition has moved harmlessly since its record was written."""
        schema = self.defined.get(table)
        is_moved = schema is not None and schema.definition != self._book[table].definition
        return schema if is_moved else None
