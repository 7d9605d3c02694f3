"""What becomes of each table when the source is looked at: a pure decision, old records and what was found in, new
records out.

    chosen, no problem     new → PENDING; another table of that name, chosen again or fixed → RESYNCING;
                           its definition moved in a way that a copy cannot follow → RESYNCING
    chosen, with a problem ERRORED, because of its definition
    no longer chosen       REMOVED
    gone from the source   ERRORED
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tailrace.errors import DefiniteError, ResyncError, TailraceError, TextKeyError
from tailrace.model.rows.text_key import with_found
from tailrace.model.table import TableId, TableSchema
from tailrace.model.table_state import COPYING, TableRecord, TableState
from tailrace.source.door.values import Definition, Problem, SourceTable

Records = Mapping[TableId, TableRecord]


@dataclass(frozen=True)
class Found:
    """What the source says."""

    chosen: Sequence[SourceTable]
    gone: Collection[TableId] = ()
    """Tables that the lake has and the source no longer has."""
    refused: Mapping[TableId, Problem] = field(default_factory=dict)
    """Chosen tables whose changes the source will not send."""
    defined: Mapping[TableId, TableSchema] = field(default_factory=dict)
    """Their shapes and definitions, looked at after their changes were sure to be sent."""
    why_copy: Callable[[Definition, Definition], str | None] = lambda old, new: None
    """The source's: why a copy made under the old definition may be wrong under the new one."""


def decide(records: Records, found: Found, *, starting: bool) -> dict[TableId, TableRecord]:
    """The tables' records from now on. When `starting`, errors of copies are tried again."""
    decided = {
        each.table: _decide_chosen(records.get(each.table), each, found, starting=starting) for each in found.chosen
    }
    for table, record in records.items():
        if table not in decided:
            decided[table] = _decide_absent(table, record, is_gone=table in found.gone)
    return decided


def _decide_chosen(record: TableRecord | None, each: SourceTable, found: Found, *, starting: bool) -> TableRecord:
    problem = each.problem or found.refused.get(each.table)
    if problem is not None:
        was = record or TableRecord(TableState.PENDING)
        return replace(was, state=TableState.ERRORED, reason=problem.message, hint=problem.hint, is_refused=True)
    if record is None:
        return TableRecord(TableState.PENDING, copy=1)
    why = _why_copy(record, each, starting=starting) or _why_definition(record, each.table, found)
    return record if why is None else resynced(record, why)


def _why_copy(record: TableRecord, each: SourceTable, *, starting: bool) -> str | None:
    """Why a table that the lake knows must be copied; None if it need not."""
    if record.state is TableState.REMOVED:
        return "it was left out for a while"
    if record.state in COPYING:
        return None
    if record.relation and record.relation != each.schema.relation:
        return "the source has another table of that name now"
    if record.state is TableState.ERRORED and record.is_refused:
        return "what kept it from being copied has been fixed"
    if record.state is TableState.ERRORED and starting and not record.relation:
        return "its first copy is tried again"
    return None


def _why_definition(record: TableRecord, table: TableId, found: Found) -> str | None:
    """Why what has been copied, or is being copied, is not the table's content any more."""
    is_copied = record.state is TableState.LIVE or (record.state in COPYING and record.definition is not None)
    new = found.defined.get(table)
    if not is_copied or new is None or new.definition is None:
        return None
    if record.definition is None:
        return "its definition was not known"
    return found.why_copy(record.definition, new.definition)


def decide_unsent(records: Records, unsent: Collection[TableId]) -> dict[TableId, TableRecord]:
    """Tables whose changes have not reached us for a while are copied again, also those whose copy is under way: it
    would miss what happened after it."""
    return {
        table: resynced(record, "its changes were not sent for a while")
        for table, record in records.items()
        if table in unsent and record.state in (TableState.LIVE, *COPYING)
    }


def decide_without_log(records: Records) -> dict[TableId, TableRecord]:
    """Where the log that tables followed is gone: what it had and the lake lacks is lost, so they are copied again."""
    return {
        table: resynced(record, "the log that it followed is gone")
        for table, record in records.items()
        if record.state in (TableState.LIVE, TableState.SNAPSHOTTING, TableState.RESYNCING)
    }


def decide_after_cut(records: Records, copies: Mapping[str, int]) -> dict[TableId, TableRecord]:
    """Where a new log begins after a cut, which has these copies. Others are copied again: those that were under way,
    and those that the cut was without, as it did not wait for a table in trouble. The source sends nothing again that
    came before the cut."""
    return {
        table: resynced(record, _why_not_in_cut(record))
        for table, record in records.items()
        if record.state in (TableState.LIVE, TableState.SNAPSHOTTING, TableState.RESYNCING)
        and copies.get(str(table)) != record.copy
    }


def _why_not_in_cut(record: TableRecord) -> str:
    if record.state is TableState.LIVE:
        return "the newest cut is without it, and the log that it followed is gone"
    return "its copy was under way when the log was lost"


def _decide_absent(table: TableId, record: TableRecord, *, is_gone: bool) -> TableRecord:
    if record.state is TableState.REMOVED:
        return record
    if is_gone and not record.relation:
        return replace(record, state=TableState.REMOVED, reason="it is gone from the source", hint=None)
    if is_gone:
        reason, hint = f"table {table} is gone from the source", f"leave it out with --exclude {table.argument}"
        return replace(record, state=TableState.ERRORED, reason=reason, hint=hint, is_refused=True)
    return replace(record, state=TableState.REMOVED, reason="it is no longer chosen", hint=None, is_refused=False)


def resynced(record: TableRecord, reason: str | None) -> TableRecord:
    """To be copied, again or for the first time. The number of the copy says that what is there is not it."""
    state = TableState.RESYNCING if record.relation else TableState.PENDING
    reason = reason if record.relation else None
    return TableRecord(state, reason, None, record.copy + 1, record.relation, text_key=record.text_key)


def asked(record: TableRecord, reason: str) -> TableRecord:
    """A person wants it copied again. What had to be text for a value that may be gone is tried as its type again."""
    return replace(resynced(record, reason), text_key=None)


def repaired(record: TableRecord, reason: str) -> TableRecord:
    """Some of its rows are to be copied again."""
    return replace(record, state=TableState.RESYNCING, reason=reason, hint=None, copy=record.copy + 1)


def stopped(table: TableId, record: TableRecord, signal: str) -> TableRecord:
    """Its copy was ended by a person."""
    hint = f"to copy it: tailrace tables resync LAKE {shlex.quote(str(table))}"
    return replace(record, state=TableState.ERRORED, reason=f"signal {signal} stopped its copy", hint=hint)


def failed(table: TableId, record: TableRecord, error: TailraceError) -> TableRecord:
    """Stopped by an error."""
    reason = error.message.removeprefix(f"{table}: ")
    text_key = with_found(record.text_key, error, reason) if isinstance(error, TextKeyError) else record.text_key
    if text_key is None and isinstance(error, TextKeyError):
        error = DefiniteError(error.message, f"to copy it again: tailrace tables resync LAKE {table}", error.table)
    if isinstance(error, ResyncError):
        return replace(resynced(record, reason), text_key=text_key)
    return replace(record, state=TableState.ERRORED, reason=reason, hint=error.hint, is_refused=False)


def is_live(record: TableRecord, relation: int) -> bool:
    """Whether `became_live` would change nothing."""
    has_told = record.reason is not None or record.hint is not None or record.is_refused
    return record.state is TableState.LIVE and record.relation == relation and not has_told


def became_live(record: TableRecord, relation: int) -> TableRecord:
    """In a cut."""
    return TableRecord(
        TableState.LIVE,
        copy=record.copy,
        relation=relation,
        lacks_rows=record.lacks_rows,
        text_key=record.text_key,
        definition=record.definition,
    )
