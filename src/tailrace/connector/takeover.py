"""Taking over from a connector of another make: its slot, from exactly where it stopped.

    no lake yet      the lake begins with that slot. The stream takes what follows the connector's last commit, and the
                     tables come by windows beside it.
    a lake of ours   the lake leaves its own slot for that one. Where the slot still has everything that follows the
                     log's end, no row is copied again; otherwise every table is, by windows.

The other connector is stopped. What it had delivered of a transaction that was under way comes again as a whole.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tailrace.connector._editing import LakeOffset
from tailrace.connector.offsets import locked
from tailrace.errors import DefiniteError
from tailrace.failpoint import failpoint
from tailrace.lake.home import LakeHome, SourceRecord
from tailrace.lake.offsets import EditKind, Effect, OffsetEdit
from tailrace.model.position import SourcePosition
from tailrace.offsets.connect import StoredOffset
from tailrace.offsets.kinds import upgrade
from tailrace.offsets.layout import OffsetFaultsError
from tailrace.source.door import Source

REASON = "its changes come from another slot, which lacks some"


@dataclass(frozen=True)
class Takeover:
    """What taking over would do."""

    offset: Mapping[str, Any]
    """The connector's offset, as the newest version writes it."""
    server: str
    begins: str
    """Where the stream begins, for a person."""
    copies: Sequence[str]
    """Tables of the lake that are copied again."""
    is_new: bool
    """There is no lake yet: every table is copied, by windows."""
    notes: Sequence[str]
    effect: Effect


def plan(lake: str | Path, stored: StoredOffset, source: Source) -> Takeover:
    """What taking over would do. Changes nothing. A definite error where it cannot be done."""
    path = Path(lake)
    offset, notes = _understood(stored, source)
    is_new = LakeHome.is_new(path)
    home = LakeHome(path)
    home.require_identity(source.identify())
    now = None if is_new else LakeOffset.of(home)
    adopted = source.offsets().adopt(now.claim if now else None)
    served = source.offsets().served(adopted.claim)
    assert served.oldest is not None
    oldest, theirs = served.oldest.ordinal, _position(offset, source)
    if theirs > served.newest.ordinal:
        raise DefiniteError(
            f"the offset is {_shown(source, theirs)}, and the source's own log ends at "
            f"{_shown(source, served.newest.ordinal)}: it is the offset of another server",
            "check the file and the connection string",
        )
    if theirs < oldest:
        notes.append(
            f"the slot has left what lies between {_shown(source, theirs)} and {_shown(source, oldest)} behind"
        )
    server = str(stored.partition.get("server") or next(iter(stored.partition.values())))
    if now is None:
        begin = max(oldest, 0 if "snapshot" in offset else theirs)
        if "snapshot" in offset:
            notes.append("its snapshot was under way: the stream begins where the slot does")
        claim = source.offset_words.skip(adopted.claim, SourcePosition(begin))
        effect = Effect(claim, None, begin, by_windows=True)
        return Takeover(offset, server, _shown(source, begin), [], True, notes, effect)
    has_gap = oldest > now.log_end or not adopted.sends_alike
    begin = max(oldest, now.log_end)
    claim = source.offset_words.skip(adopted.claim, SourcePosition(begin) if has_gap else None)
    effect = Effect(claim, now.claim, begin if has_gap else None, REASON if has_gap else None, adopted.leave, True)
    return Takeover(offset, server, _shown(source, begin), now.followed() if has_gap else [], False, notes, effect)


def take_over(lake: str | Path, stored: StoredOffset, source: Source, who: str, format: str = "delta") -> OffsetEdit:
    """Make the lake, or the one that is there, continue with the slot of another connector. Durable when this returns;
    the next start takes it up. Nothing is changed at the source before that."""
    plan(lake, stored, source)
    with locked(LakeHome.create(Path(lake))) as home:
        # Once more, now that nothing moves.
        return _take_over(home, plan(lake, stored, source), source, who, format)


def _take_over(home: LakeHome, planned: Takeover, source: Source, who: str, format: str) -> OffsetEdit:
    edits = home.offsets.all()
    before = [] if planned.is_new else LakeOffset.of(home).entries()
    after = [{"partition": {"server": planned.server}, "offset": dict(planned.offset)}]
    version = edits[-1].version + 1 if edits else 1
    edit = OffsetEdit(
        version, EditKind.IMPORT, who, time.time_ns() // 1000, before, after, planned.effect, planned.server
    )
    edit = replace(edit, says=_says(planned))
    home.offsets.append(edit)
    failpoint("offsets.imported")
    if planned.is_new:
        assert planned.effect.claim is not None
        home.store_source(SourceRecord(dict(source.identify()), dict(planned.effect.claim), format))
    return edit


def _understood(stored: StoredOffset, source: Source) -> tuple[dict[str, Any], list[str]]:
    """The offset as the newest version writes it. Fields that a later version may have added are passed over."""
    layout = source.offset_words.layout
    faults = layout.check(stored.partition, stored.offset)
    unknown = {fault.field.removeprefix("offset.") for fault in faults if fault.rule == "known"}
    others = [fault for fault in faults if fault.rule != "known"]
    if others:
        raise OffsetFaultsError(others)
    offset = {name: value for name, value in stored.offset.items() if name not in unknown}
    return upgrade(layout, offset), [f"{name} is not known and passed over" for name in sorted(unknown)]


def _position(offset: Mapping[str, Any], source: Source) -> int:
    return next(iter(source.offset_words.positions(offset).values()))


def _says(planned: Takeover) -> str:
    rows = "every table is copied by windows" if planned.is_new else f"{len(planned.copies)} tables are copied again"
    return f"the stream begins at {planned.begins}; {rows}"


def _shown(source: Source, ordinal: int) -> str:
    return source.format(SourcePosition(ordinal))
