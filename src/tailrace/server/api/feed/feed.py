"""One list of what happened to a connector, made of what is stored already.

    messages       states, tables, troubles, what was made at the source, warnings and errors
    notifications  steps of copies
    offsets        edits
    configurations what was stored, by whom

Each is read from its newest end and only as far as a page needs it. Whoever pressed a button that only changes what is
wanted (pause, resume, stop) is in none of them.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from tailrace.configuration.reading import redacted
from tailrace.lake.home import LakeHome
from tailrace.lake.records.offset_history import EditState
from tailrace.model.notification import CopyStep, Notification
from tailrace.model.table import TableId
from tailrace.server.api.feed.models import FeedEntry, FeedKind
from tailrace.server.api.messages.models import MessageInfo, line_time
from tailrace.server.hints import in_properties
from tailrace.server.lakes.message_files import MessageLine, lines_before, message_files
from tailrace.server.moments import moment
from tailrace.server.supervisor.door import ConnectorHost

CONFIGURATIONS_AT_ONCE = 10
_TOLD = tuple(f'"message": "{name}"'.encode() for name in ("StateChanged", "TableChanged", "TroubleChanged"))
_PREPARED = b'"message": "SourcePrepared"'
_GRAVE = tuple(f'"level": "{name}"'.encode() for name in ("warning", "error", "critical"))
_HEAD_BYTES = 300
"""Time, level, logger and the beginning of the message lie within these."""
_UNTOLD_STEPS = (CopyStep.IN_PROGRESS,)
"""There are thousands of these, and progress shows them."""


def feed_of(host: ConnectorHost, name: str, before: datetime | None) -> Iterator[FeedEntry]:
    """Everything, the newest first, or what is older than a time."""
    home = host.lake_home(name)
    parts = (_said(home, before), _copied(home, before), _edited(home), _configured(host, name))
    for entry in heapq.merge(*parts, key=lambda each: each.at, reverse=True):
        if before is None or entry.at < before:
            yield entry


def _said(home: LakeHome, before: datetime | None) -> Iterator[FeedEntry]:
    for line in lines_before(message_files(home.runs.messages)):
        head = line.content[:_HEAD_BYTES]
        if not any(each in head for each in (*_TOLD, _PREPARED, *_GRAVE)):
            continue
        at = line_time(line)
        if at is None or (before is not None and at >= before):
            continue
        entry = _entry(line, at)
        if entry is not None:
            yield entry


def _entry(line: MessageLine, at: datetime) -> FeedEntry | None:
    message = MessageInfo.of(line)
    event = message.fields.get("event")
    try:
        found = _of_event(at, message.message, event) if isinstance(event, dict) else _of_message(at, message)
    except (KeyError, TypeError, ValueError):
        # An earlier or a later state of Tailrace wrote it.
        return None
    return found


def _of_event(at: datetime, name: str, fields: dict[str, Any]) -> FeedEntry | None:
    match name:
        case "StateChanged":
            return FeedEntry(at=at, kind=FeedKind.STATE, state=fields["state"], text=fields["reason"] or "")
        case "TableChanged":
            return _table_entry(at, fields)
        case "TroubleChanged" if fields["message"] is None:
            return FeedEntry(at=at, kind=FeedKind.TROUBLE, state="over", text="it is over")
        case "TroubleChanged":
            return FeedEntry(at=at, kind=FeedKind.TROUBLE, text=fields["message"], hint=_hint(fields))
        case "SourcePrepared" if fields["done"]:
            return FeedEntry(at=at, kind=FeedKind.SOURCE, text="; ".join(map(str, fields["done"])))
    return None


def _of_message(at: datetime, message: MessageInfo) -> FeedEntry:
    reason, table = message.fields.get("reason"), message.fields.get("table")
    return FeedEntry(
        at=at,
        kind=FeedKind.WARNING if message.level == "warning" else FeedKind.ERROR,
        text=f"{message.message}: {reason}" if reason else message.message,
        table=table if isinstance(table, str) else None,
    )


def _table_entry(at: datetime, fields: dict[str, Any]) -> FeedEntry:
    record, table = fields["record"], TableId(**fields["table"])
    return FeedEntry(
        at=at,
        kind=FeedKind.TABLE,
        state=str(record["state"]),
        text=record["reason"] or "",
        hint=_hint(record),
        table=str(table),
    )


def _hint(fields: dict[str, Any]) -> str | None:
    hint = fields.get("hint")
    return None if hint is None else in_properties(str(hint))


def _copied(home: LakeHome, before: datetime | None) -> Iterator[FeedEntry]:
    for line in lines_before(home.signals.notifications.files):
        try:
            told = Notification.from_json(line.content)
            at = moment(told.time_us)
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            continue
        if told.step in _UNTOLD_STEPS or (before is not None and at >= before):
            continue
        rows = f"{told.rows:,} rows" if told.rows else ""
        asked = f"signal {told.signal}" if told.signal else ""
        text = "; ".join(filter(None, (told.text, rows, asked)))
        yield FeedEntry(at=at, kind=FeedKind.COPY, state=told.step.value, text=text, table=told.table)


def _edited(home: LakeHome) -> Iterator[FeedEntry]:
    for edit in reversed(home.offsets.all()):
        state = EditState(edit.state).value
        text = f"edit {edit.version} ({edit.kind}): {edit.says}"
        yield FeedEntry(at=moment(edit.time_us), kind=FeedKind.OFFSETS, state=state, text=text, who=edit.who)


def _configured(host: ConnectorHost, name: str) -> Iterator[FeedEntry]:
    """As many at a time as are needed, and one more: what the last one is compared with."""
    before: int | None = None
    while True:
        found = host.history(name, before, CONFIGURATIONS_AT_ONCE + 1)[::-1]
        for number, newer in enumerate(found[:CONFIGURATIONS_AT_ONCE]):
            older = found[number + 1] if number + 1 < len(found) else None
            text = f"configuration {newer.version}: {_changes(newer.config, None if older is None else older.config)}"
            yield FeedEntry(at=moment(newer.changed_us), kind=FeedKind.CONFIGURATION, text=text, who=newer.who)
        if len(found) <= CONFIGURATIONS_AT_ONCE:
            return
        before = found[-2].version


def _changes(new: Any, old: Any) -> str:
    if new is None:
        return "the connector was removed"
    if old is None:
        return "the connector was created"
    now, then = redacted(new), redacted(old)
    keys = sorted(key for key in {*now, *then} if now.get(key) != then.get(key))
    return f"{', '.join(keys)} changed" if keys else "stored again"
