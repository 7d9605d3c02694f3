"""Copies that people asked for: through the object, or by files that another process put into the lake."""

from __future__ import annotations

from tailrace.connector.control import RunControl
from tailrace.connector.tables.book import TableBook
from tailrace.connector.tables.decisions import asked
from tailrace.lake.home import LakeHome
from tailrace.model.table_state import TableState


def take_requests(home: LakeHome, control: RunControl, book: TableBook) -> None:
    """A file goes when what it asks for is in the book."""
    files = list(home.requests.resyncs())
    wanted = {*control.take_resyncs(), *(table for table, _ in files)}
    records = book.records
    chosen = [table for table in wanted if table in records and records[table].state is not TableState.REMOVED]
    book.set({table: asked(records[table]) for table in chosen})
    for _, path in files:
        path.unlink(missing_ok=True)
