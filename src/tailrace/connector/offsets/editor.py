"""Offsets of a lake: read at any time; assessed, edited, reset and undone while no connector runs.

    read ── assess ── apply ──▶ a line in the history, durable ──▶ the next start takes it up

An edit is a line in the history before anything comes of it. The next start of a connector finishes it, however often
it dies in between. Nothing here prints; a server and the command line call the same functions.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from tailrace.connector.offsets._view import LakeOffset
from tailrace.connector.offsets.assessment import Assessment, Direction, consequence, reach_faults, wanted_ordinal
from tailrace.errors import DefiniteError
from tailrace.failpoint import failpoint
from tailrace.lake.home import LakeHome
from tailrace.lake.records.offset_history import EditKind, EditState, Effect, OffsetEdit
from tailrace.model.lake_address import LakeAddress
from tailrace.model.position import SourcePosition
from tailrace.offsets.difference import diff
from tailrace.offsets.layout import Fault, OffsetFaultsError
from tailrace.offsets.wire import Entry, parse_entries, validate_body
from tailrace.source.door.offsets import Counted, Served
from tailrace.source.door.source import Source
from tailrace.source.door.stream import Stream
from tailrace.source.door.tables import Tables

__all__ = [
    "Assessment",
    "Direction",
    "EditConflictError",
    "OffsetEdit",
    "Offsets",
    "RunningError",
    "apply",
    "assess",
    "assess_reset",
    "history",
    "locked",
    "partition",
    "planned_undo",
    "read",
    "require_version",
    "reset",
    "undo",
]
SKIPPED = "changes were skipped: its offset was set forward"
RESET = "its offset was reset"
REWOUND = "its offset was set back before changes that were to be skipped"


class RunningError(DefiniteError):
    """Offsets are changed only while no connector has the lake: over REST, a 409."""


class EditConflictError(DefiniteError):
    """Another editor came first: over REST, a 409."""


@dataclass(frozen=True)
class Offsets:
    """A lake's offsets at one moment."""

    version: int
    """Of the newest edit."""
    entries: list[dict[str, Any]]
    is_waiting: bool
    """An edit waits for the next start of a connector; the entries show it already."""
    served: Served | None = None
    """What the source can still send; None where it was not asked."""

    def to_wire(self) -> dict[str, Any]:
        """As KIP-875 has it."""
        return {"offsets": self.entries}


def read(lake: str | LakeAddress, source: Source | None = None, server: str | None = None) -> Offsets:
    """Safe at any time. With a source, also what it can still send. `server` is the name that the partition shall have;
    by default the one that was imported, or the database's."""
    now = LakeOffset.of(_home(lake, source), server)
    served = source.offsets().served(now.claim) if source is not None else None
    return Offsets(now.version, now.entries(), bool(now.home.offsets.waiting()), served)


def partition(lake: str | LakeAddress, server: str | None = None) -> dict[str, str]:
    """The lake's only partition."""
    return {"server": LakeOffset.of(LakeHome.find(lake), server).server}


def history(lake: str | LakeAddress) -> list[OffsetEdit]:
    """Every edit, oldest first, with what became of it."""
    return LakeHome.find(lake).offsets.all()


def assess(
    lake: str | LakeAddress, body: object, source: Source | None = None, server: str | None = None
) -> Assessment:
    """What an edit would do: `{"offsets": [{"partition": {...}, "offset": {...} | null}]}`. Changes nothing.

    Without a source it is not compared with what the source can still send; the next start does that."""
    return _assess(LakeOffset.of(_home(lake, source), server), body, source)


def apply(
    lake: str | LakeAddress,
    body: object,
    who: str,
    source: Source | None = None,
    server: str | None = None,
    version: int | None = None,
) -> OffsetEdit:
    """Make an edit. Durable when this returns; the next start takes it up.

    `version` is the one that the editor has seen: an `EditConflictError` if there is a newer one. A `RunningError`
    while a connector has the lake, `OffsetFaultsError` for an edit that cannot be made."""
    with locked(_home(lake, source)) as home:
        now = LakeOffset.of(home, server)
        require_version(now.version, version)
        found = _assess(now, body, source)
        if found.faults:
            raise OffsetFaultsError(found.faults)
        kind = EditKind.RESET if found.direction is Direction.RESET else EditKind.SET
        edit = _edit(now, kind, who, found.after, _effect(now, found), found.says)
        return _append(home, edit)


def reset(lake: str | LakeAddress, who: str, server: str | None = None, version: int | None = None) -> OffsetEdit:
    """Forget the position, as KIP-875's DELETE does: the next start copies every table again by windows. Nothing is
    skipped: the stream continues where it was."""
    return apply(lake, _reset_body(lake, server), who, None, server, version)


def assess_reset(lake: str | LakeAddress, server: str | None = None) -> Assessment:
    """What a reset would do. Changes nothing."""
    return assess(lake, _reset_body(lake, server), None, server)


def _reset_body(lake: str | LakeAddress, server: str | None) -> dict[str, Any]:
    return {"offsets": [{"partition": partition(lake, server), "offset": None}]}


def undo(lake: str | LakeAddress, who: str, server: str | None = None, version: int | None = None) -> OffsetEdit:
    """Take the last edit back. One that waits is simply not made. One that a connector has taken up can be taken back
    until the log has gone further than it was before; a definite error says why it cannot."""
    with locked(LakeHome.find(lake)) as home:
        now = LakeOffset.of(home, server)
        require_version(now.version, version)
        return _append(home, _undo(now, who))


def planned_undo(lake: str | LakeAddress, who: str, server: str | None = None) -> OffsetEdit:
    """The edit that an undo would make. Changes nothing."""
    return _undo(LakeOffset.of(LakeHome.find(lake), server), who)


def _undo(now: LakeOffset, who: str) -> OffsetEdit:
    last = now.last_edit()
    if last is None:
        raise DefiniteError("there is no edit to undo", f"the history: tailrace offsets history {now.home.lake}")
    effect, says = _undoing(now, last)
    return replace(_edit(now, EditKind.UNDO, who, last.before, effect, says), undoes=last.version)


def _home(lake: str | LakeAddress, source: Tables | None) -> LakeHome:
    home = LakeHome.find(lake)
    if source is not None:
        home.require_identity(source.identify())
    return home


@contextmanager
def locked(home: LakeHome) -> Iterator[LakeHome]:
    """The lake to ourselves. A connector that is paused has it too."""
    with ExitStack() as stack:
        try:
            stack.enter_context(home.locked())
        except DefiniteError as error:
            holder = home.holder()
            # A bucket may be in use with a home elsewhere.
            told = error.message if holder is None else f"{home.lake} is in use by process {holder or '?'}"
            hint = "stop the connector, then try again"
            raise RunningError(f"{told}: offsets are changed only when it is stopped", hint) from None
        yield home


def require_version(newest: int, seen: int | None) -> None:
    """A `EditConflictError` where another edit than the one that the editor has seen is the newest."""
    if seen is not None and seen != newest:
        raise EditConflictError(
            f"the offsets were edited meanwhile: edit {newest} is there, not {seen}",
            "look at them again, then try again",
        )


def _append(home: LakeHome, edit: OffsetEdit) -> OffsetEdit:
    home.offsets.append(edit)
    failpoint("offsets.edited")
    if edit.effect == Effect():
        # There is nothing for the next start to do.
        home.offsets.took(edit.version, edit.time_us)
        return replace(edit, state=EditState.TAKEN)
    return edit


def _edit(now: LakeOffset, kind: EditKind, who: str, after: Any, effect: Effect, says: str) -> OffsetEdit:
    return OffsetEdit(now.version + 1, kind, who, time.time_ns() // 1000, now.entries(), after, effect, says=says)


def _assess(now: LakeOffset, body: object, source: Stream | None) -> Assessment:
    layout, before = now.words.layout, now.entries()
    faults = validate_body(layout, body)
    entries = parse_entries(layout, body) if not faults else []
    faults = faults or _strangers(entries, now.server)
    base = Assessment(now.version, before, [each.to_wire() for each in entries], faults)
    if faults:
        return base
    old = before[0]["offset"] if before else None
    new = entries[0].offset
    base = replace(base, differences=diff(old, new), positions=now.positions())
    if new is None:
        tables = now.followed()
        says = consequence(Direction.RESET, None, tables)
        return replace(base, after=[], direction=Direction.RESET, tables=tables, says=says)
    target, fault = wanted_ordinal(now.words.positions(old or {}), now.words.positions(new))
    if fault is not None:
        return replace(base, faults=[fault])
    if target is None:
        found = _with_source(now, base, source)
        return replace(found, target=now.log_end, says=consequence(Direction.NOWHERE, None, ()))
    return _compared(now, base, target, source)


def _strangers(entries: list[Entry], server: str) -> list[Fault]:
    """A lake has one partition."""
    for number, entry in enumerate(entries):
        if dict(entry.partition) != {"server": server}:
            place = f"offsets[{number}].partition"
            return [Fault(place, "partition", f'{place} is not {{"server": "{server}"}}, the only one there is')]
    return []


def _compared(now: LakeOffset, base: Assessment, target: int, source: Stream | None) -> Assessment:
    """With what the source can send, and with what the lake has."""
    found = _with_source(now, base, source)
    faults = reach_faults(target, now.log_end, found.served, now.shown) if found.served is not None else []
    positions = {**found.positions, "edit": now.shown(target)}
    found = replace(found, target=target, positions=positions, faults=faults)
    if faults:
        return found
    direction, counted, tables = _direction(now, target, source)
    says = consequence(direction, counted, tables)
    return replace(found, direction=direction, transactions=counted, tables=tables, says=says)


def _with_source(now: LakeOffset, base: Assessment, source: Stream | None) -> Assessment:
    """Between which positions the source can send, where it is asked."""
    if source is None:
        return base
    served = source.offsets().served(now.claim)
    positions = {**base.positions, "source": now.shown(served.newest.ordinal)}
    positions |= {"kept": now.shown(served.oldest.ordinal)} if served.oldest is not None else {}
    return replace(base, served=served, positions=positions)


def _direction(now: LakeOffset, target: int, source: Stream | None) -> tuple[Direction, Counted | None, list[str]]:
    if target > now.log_end:
        counted = None
        if source is not None:
            counted = source.offsets().count(now.claim, now.last_taken(), SourcePosition(target))
        return Direction.FORWARD, counted, now.followed()
    again = now.logged_since(target)
    return (Direction.BACKWARD if again else Direction.NOWHERE), Counted(again), []


def _effect(now: LakeOffset, found: Assessment) -> Effect:
    """Going nowhere takes back what an edit that still waits would skip."""
    match found.direction:
        case Direction.RESET:
            return Effect(copy_again=RESET)
        case Direction.FORWARD:
            assert found.target is not None
            claim = now.words.skip(now.claim, SourcePosition(found.target))
            return Effect(claim, now.claim, found.target, SKIPPED)
        case Direction.BACKWARD:
            return replace(_without_skip(now), position=found.target)
        case Direction.NOWHERE:
            return _without_skip(now)


def _without_skip(now: LakeOffset) -> Effect:
    edit = now.unreached()
    if edit is None:
        return Effect()
    # Copies that a start has begun since count on what is skipped not to be logged.
    why = REWOUND if edit.state is EditState.TAKEN else None
    return Effect(now.words.skip(now.claim, None), now.claim, copy_again=why)


def _undoing(now: LakeOffset, last: OffsetEdit) -> tuple[Effect, str]:
    """What has to be done to take an edit back."""
    effect = last.effect
    if last.kind is EditKind.IMPORT and effect.was is None:
        raise DefiniteError(
            f"edit {last.version} cannot be undone: the lake began with it",
            "remove the lake's folder; what it reads at the source belongs to the other connector",
        )
    if last.state is EditState.WAITING:
        return _undoing_waiting(now, last)
    if effect.claim is None and effect.copy_again is None:
        return Effect(), "it had changed nothing"
    if last.kind is EditKind.IMPORT:
        raise DefiniteError(
            f"edit {last.version} cannot be undone: the lake has its stream from it", "begin another lake without it"
        )
    if last.kind is EditKind.RESET:
        raise DefiniteError(
            f"edit {last.version} cannot be undone: its tables are being copied again", "the copies end by themselves"
        )
    if now.log_end >= (effect.position or 0):
        raise DefiniteError(
            f"edit {last.version} cannot be undone: the log ends at {now.shown(now.log_end)} by now, and the source no "
            "longer keeps what was skipped",
            "every table is copied again, so the lake lacks nothing",
        )
    says = "what was skipped is logged after all; every table is copied again"
    return Effect(effect.was, now.claim, copy_again=REWOUND), says


def _undoing_waiting(now: LakeOffset, last: OffsetEdit) -> tuple[Effect, str]:
    """A start may have died while it took the edit up: then the claim has moved already."""
    says = "it had not been taken up: nothing comes of it"
    if last.effect.claim is None or now.record.claim != last.effect.claim:
        return Effect(), says
    if last.effect.leave is not None:
        raise DefiniteError(
            f"edit {last.version} cannot be undone: a start has taken up a part of it",
            "the next start takes up the rest",
        )
    return Effect(last.effect.was, last.effect.claim), "the next start takes back what the last one had taken up of it"
