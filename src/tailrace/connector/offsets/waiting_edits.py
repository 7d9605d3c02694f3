"""Edits of the offset that wait are taken up when a connector starts, before anything else is decided.

Every step can be done twice: a start that dies in the middle is finished by the next one. Tables are told first that
they are copied again, then the claim moves: changes are never skipped for a table that does not know of it.
"""

from __future__ import annotations

import shlex
import time
from contextlib import suppress
from dataclasses import replace

from tailrace.connector.tables.book import TableBook
from tailrace.connector.tables.decisions import resynced
from tailrace.errors import DefiniteError
from tailrace.failpoint import failpoint
from tailrace.lake.home import LakeHome, SourceRecord
from tailrace.lake.records.offset_history import EditState, OffsetEdit
from tailrace.model.position import SourcePosition
from tailrace.model.table_state import COPYING, TableState
from tailrace.settings import ConnectorSettings, SnapshotMode
from tailrace.source.door.source import Source


def take_up(home: LakeHome, source: Source, book: TableBook, settings: ConnectorSettings) -> ConnectorSettings:
    """Do what waiting edits ask for. Returns the settings of a run after them."""
    edits = home.offsets.all()
    for edit in edits:
        if edit.state is EditState.WAITING:
            _take(home, source, book, edit, settings.format)
    by_windows = any(edit.effect.by_windows and edit.state is not EditState.UNDONE for edit in edits)
    if by_windows and settings.snapshot_mode is SnapshotMode.INITIAL:
        return replace(settings, snapshot_mode=SnapshotMode.INCREMENTAL)
    return settings


def _take(home: LakeHome, source: Source, book: TableBook, edit: OffsetEdit, format: str) -> None:
    effect, known = edit.effect, home.source()
    if known is not None and effect.position is not None:
        # What positions of the source mean is for the claim to say; a takeover brings its own. Whether
        # it fits the source is asked after the edit.
        with suppress(DefiniteError):
            source.claim(known.claim if effect.claim is None else effect.claim)
    if effect.position is not None and effect.position > source.now().ordinal:
        # The source would wait for it in silence, and skip everything until then.
        place = source.format(SourcePosition(effect.position))
        raise DefiniteError(
            f"the offset was set to {place}, which the source has not written yet",
            f"tailrace offsets undo {shlex.quote(str(home.lake))}",
        )
    if effect.copy_again is not None:
        followed = {t: r for t, r in book.records.items() if r.state in (TableState.LIVE, *COPYING)}
        book.set({table: resynced(record, effect.copy_again) for table, record in followed.items()})
    failpoint("offsets.copies_told")
    if effect.claim is not None:
        # There is no record yet where an import died before it had made the lake.
        record = home.source() or SourceRecord(dict(source.identify()), {}, format)
        home.store_source(replace(record, claim=dict(effect.claim)))
    failpoint("offsets.claim_stored")
    if effect.leave is not None:
        source.drop(effect.leave)
    home.offsets.took(edit.version, time.time_ns() // 1000)
