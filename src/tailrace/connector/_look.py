"""A look at the source's tables, at the start and every few seconds: which there are, and which can be copied."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from tailrace.connector._book import TableBook
from tailrace.connector._control import RunControl, Waits
from tailrace.connector._decisions import Found, decide, decide_unsent
from tailrace.connector.events import Event, SourcePrepared
from tailrace.errors import TailraceError
from tailrace.model.position import SourcePosition
from tailrace.model.table_state import TableState
from tailrace.settings import ConnectorSettings
from tailrace.source.door import Claim, Source, SourceTable

WAIT_SECONDS_MAX = 1.0

logger = logging.getLogger(__name__)


class TableLook:
    """Keeps the book of tables in step with the source."""

    def __init__(
        self,
        settings: ConnectorSettings,
        source: Source,
        claim: Claim,
        book: TableBook,
        control: RunControl,
        tell: Callable[[Event], None],
    ) -> None:
        self._settings = settings
        self._source = source
        self._claim = claim
        self._book = book
        self._tell = tell
        self._waits = Waits(control, tell)
        self._due = 0.0

    def take_if_due(self, resume: Callable[[], SourcePosition | None]) -> None:
        """A look that fails is tried again later: what is there is copied meanwhile."""
        if time.monotonic() < self._due:
            return
        try:
            chosen = self._source.tables(self._settings.tables, self._settings.exclude)
            self.take(chosen, resume(), starting=False)
        except TailraceError as error:
            logger.warning("could not look at the tables", extra={"reason": error.message})
            self._due = time.monotonic() + self._settings.look_at_tables_seconds

    def take(self, chosen: Sequence[SourceTable], resume: SourcePosition | None, *, starting: bool) -> None:
        """Bring the book up to date with what the source says, and the source with what is chosen."""
        names = {each.table for each in chosen}
        absent = [t for t, r in self._book.records.items() if t not in names and r.state is not TableState.REMOVED]
        gone = set(absent) - set(self._source.describe(absent)) if absent else set()
        sendable = [each.table for each in chosen if each.problem is None]
        # Written down before the source is changed: afterwards nothing would show the gap.
        self._book.set(decide_unsent(self._book.records, self._source.unsent(self._claim, sendable)))
        # Later looks are taken between two batches, which must not wait: the next one tries again.
        waiting = self._waits if starting else self._waits.at_most(WAIT_SECONDS_MAX)
        prepared = self._source.prepare(self._claim, sendable, resume, waiting)
        self._waits.over()
        if prepared.done:
            self._tell(SourcePrepared(prepared.done))
        found = Found(chosen, gone, prepared.refused)
        self._book.set(decide(self._book.records, found, starting=starting))
        self._due = time.monotonic() + self._settings.look_at_tables_seconds
