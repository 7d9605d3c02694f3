"""A look at the source's tables, at the start and every few seconds: which there are, and which can be copied.

A look costs a few queries, so most are spared: where the source's mark is the one of the last look, and no table has
another state, another look would find the same.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tailrace.connector.control import HeldUpError, Waits
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
from tailrace.stop import Stop

WAIT_SECONDS_MAX = 1.0
WHOLE_SECONDS = 60.0
"""How often everything is looked at, though the source says that nothing is new."""
URGENT_SECONDS = 0.2
REST_FACTOR = 4
_AT_REST = (TableState.LIVE, TableState.REMOVED)


class LookSchedule:
    """When to look. One thread."""

    def __init__(self, every_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_seconds = every_seconds
        self._clock = clock
        self._due = self._whole_due = self._urgent_due = 0.0

    def is_due(self, *, is_urgent: bool) -> bool:
        """`is_urgent`: the source's mark has moved, and readers wait for what a look says to it."""
        return self._clock() >= (min(self._due, self._urgent_due) if is_urgent else self._due)

    @property
    def is_whole_due(self) -> bool:
        """Whether everything is to be looked at, though the source says that nothing is new."""
        return self._clock() >= self._whole_due

    def looked(self) -> None:
        """The last look has just ended, or was spared."""
        self._due = self._clock() + self._every_seconds

    def looked_at_everything(self) -> None:
        self._whole_due = self._clock() + WHOLE_SECONDS

    def looked_since(self, begun: float) -> None:
        """A look that costs much is not taken all the time, however urgent it is."""
        now = self._clock()
        self._urgent_due = now + max(URGENT_SECONDS, REST_FACTOR * (now - begun))

    def now(self) -> float:
        return self._clock()


@dataclass(frozen=True)
class LastLook:
    """What the last look was taken under."""

    mark: str | None = None
    """The source's mark before it."""
    records: Mapping[TableId, TableRecord] | None = None
    """The book after it; None where another look may find more."""
    chosen_at: int = 0
    """The mark of people's choices before it."""
    looked_at: float = 0.0
    """When everything was looked at the last time, by the clock on the wall."""
    is_spared: bool = False
    """The first look was not taken, because it would have found nothing new."""

    def would_find_the_same(self, mark: str | None, records: Mapping[TableId, TableRecord]) -> bool:
        return mark is not None and self.records is not None and (self.mark, self.records) == (mark, records)


class TableLook:
    """Keeps the book of tables in step with the source. One thread."""

    def __init__(
        self,
        source: Source,
        chooser: Chooser,
        claim: Claim,
        book: TableBook,
        stop: Stop,
        tell: Callable[[Event], None],
    ) -> None:
        self._chooser = chooser
        self._source = source
        self._claim = claim
        self._book = book
        self._tell = tell
        self._waits = Waits(stop, tell)
        self._schedule = LookSchedule(chooser.settings.look_at_tables_seconds)
        self._last = LastLook()
        self.defined: dict[TableId, TableSchema] = {}
        """Shapes and definitions as of the last look."""
        self.rows_estimated: dict[TableId, int] = {}
        self.bytes_estimated: dict[TableId, int] = {}
        """How many rows the tables are thought to have."""
        self.position = START
        """The last look saw everything that was committed before."""

    def begin(self, resume: SourcePosition | None) -> None:
        """The first look, at the start."""
        # Marks first: what changes from here on shows in another mark.
        mark = self._source.mark()
        self._last = replace(self._last, chosen_at=self._chooser.mark())
        chosen = self._chooser.tables(self._book.records)
        if self._chooser.passed_over is not None:
            error = self._chooser.passed_over
            self._tell(SourcePrepared([f"{error.message} any more, the others go on: {error.hint}"]))
        held_up = self.take(chosen, resume, starting=True)
        self._saw(mark, held_up)

    def is_unchanged(self, left: Left | None) -> bool:
        """Whether a first look would find what the last run found. It then counts as taken."""
        records = self._book.records
        if left is None or not self._is_at_rest():
            return False
        # First: what was committed up to here shows in the mark.
        position, mark = self._source.now(), self._source.mark()
        self._last = replace(self._last, chosen_at=self._chooser.mark())
        if mark is None or not left.has_look(self._conditions(mark)):
            return False
        self.position = position
        self._last = LastLook(mark, records, self._last.chosen_at, left.looked_at, is_spared=True)
        self._schedule.looked_at_everything()
        self._schedule.looked()
        return True

    @property
    def is_wanted(self) -> bool:
        """Before anything is copied: no table has been looked at yet."""
        return self._last.is_spared and not self._is_at_rest()

    def _is_at_rest(self) -> bool:
        return all(each.state in _AT_REST for each in self._book.records.values())

    def left(self) -> tuple[str | None, float]:
        """What the last look was taken under, and when that was; None if anything was decided since, or if a table has
        yet to follow to what was found: only another look has it do so."""
        last = self._last
        if last.mark is None or last.records != self._book.records or any(map(self.moved, self.defined)):
            return None, 0.0
        return self._conditions(last.mark), last.looked_at

    def _conditions(self, mark: str) -> str:
        """Changes whenever a look might find something else."""
        settings = self._chooser.settings
        chosen = settings.tables, settings.exclude, settings.is_guest, self._last.chosen_at
        about = [mark, dict(self._claim), chosen, dict(self._source.arguments), self._book.digest()]
        return hashlib.sha256(repr(about).encode()).hexdigest()

    @property
    def found(self) -> tuple[bool, str | None]:
        """Whether every live table is as its copy has it; and the source's mark that says so as long as it is the same,
        if the source has one."""
        is_settled = not any(self.moved(table) for table in self._book.of_state(TableState.LIVE))
        return is_settled, self._last.mark

    def is_due(self, *, is_urgent: bool = False) -> bool:
        """`is_urgent`: the source's mark has moved, and readers wait for what a look says to it."""
        is_time = self._schedule.is_due(is_urgent=is_urgent)
        return is_time or self._chooser.mark() != self._last.chosen_at or self.is_wanted

    def take_again(self, resume: SourcePosition | None) -> None:
        """While it runs. A pattern that names nothing any more is no error now: its table is gone."""
        mark, chosen_at = self._source.mark(), self._chooser.mark()
        is_same = chosen_at == self._last.chosen_at and self._last.would_find_the_same(mark, self._book.records)
        if is_same and not self._schedule.is_whole_due:
            self._schedule.looked()
            return
        begun = self._schedule.now()
        # If this look fails, the next one looks at everything.
        self._last = replace(self._last, records=None, chosen_at=self._chooser.mark())
        chosen = self._chooser.tables(self._book.records, starting=False)
        self._saw(mark, self.take(chosen, resume, starting=False))
        self._schedule.looked_since(begun)

    def _saw(self, mark: str | None, held_up: set[TableId]) -> None:
        self._last = replace(self._last, mark=mark)
        if mark is not None and not held_up:
            self._last = replace(self._last, records=self._book.records, looked_at=time.time())
            self._schedule.looked_at_everything()

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
        self.defined = self._source.define(self._claim, known)
        self._last = replace(self._last, is_spared=False)
        found = Found(chosen, gone, prepared.refused, self.defined, self._source.why_copy)
        decided = decide(records, found, starting=starting)
        self._book.set({table: record for table, record in decided.items() if table not in held_up})
        self.position = self._source.now()
        self._schedule.looked()
        return held_up

    def _prepare(
        self, tables: set[TableId], unsent: set[TableId], resume: SourcePosition | None, *, starting: bool
    ) -> tuple[Prepared, set[TableId]]:
        """Let the source send the tables. Later looks are taken before a cut of the others, which must not wait: what
        another process holds up then is left for the next look."""
        try:
            settings = self._chooser.settings
            waiting = self._waits if starting else self._waits.at_most(WAIT_SECONDS_MAX)
            if starting and settings.once:
                waiting = self._waits.at_most(settings.retries.patience_seconds)
            prepared = self._source.prepare(
                self._claim, sorted(tables), resume, waiting, keeps_others=settings.is_guest
            )
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
