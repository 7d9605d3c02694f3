"""Taking over from a connector of another make: the stream that it has at the source, from exactly where it stopped.

    no lake yet      the lake begins with that stream, takes what follows the connector's last commit, and gets its
                     tables by windows beside it.
    a lake of ours   the lake leaves its own stream for that one. Where the source can still send all that follows the
                     log's end, no row is copied again; otherwise every table is, by windows.

The other connector is stopped. What it had delivered of a transaction that was under way comes again as a whole.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tailrace.connector.offsets._view import LakeOffset
from tailrace.connector.offsets.editor import locked, require_version
from tailrace.connector.start.preflight import require_ready
from tailrace.errors import DefiniteError
from tailrace.failpoint import failpoint
from tailrace.lake.home import LakeHome, SourceRecord
from tailrace.lake.records.offset_history import EditKind, Effect, OffsetEdit
from tailrace.model.lake_address import LakeAddress
from tailrace.model.position import SourcePosition
from tailrace.offsets.connect import StoredOffset
from tailrace.offsets.kinds import upgrade
from tailrace.offsets.layout import OffsetFaultsError
from tailrace.settings import ConnectorSettings
from tailrace.source.door.codec import Codec
from tailrace.source.door.offsets import Adopted, LogEnd
from tailrace.source.door.source import Source
from tailrace.source.kinds import words_of

REASON = "its changes come from what another connector had at the source, which lacks some"


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

    @property
    def says(self) -> str:
        """What follows, for a person."""
        copies = f"{len(self.copies)} table{'' if len(self.copies) == 1 else 's'}"
        rows = "every table is copied by windows" if self.is_new else f"{copies} copied again"
        return f"the stream begins at {self.begins}; {rows}"


def source_arguments(lake: str | LakeAddress, kind: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """A source's arguments, with what Debezium would use where a person names nothing. A lake that is there keeps what
    it has."""
    return words_of(kind).adopting(options, is_new=LakeHome.is_new(lake))


def plan(lake: str | LakeAddress, stored: StoredOffset, source: Source) -> Takeover:
    """What taking over would do. Changes nothing. A definite error where it cannot be done."""
    codec = type(source)
    offset, notes = _understood(stored, codec)
    is_new = LakeHome.is_new(lake)
    home = LakeHome(lake)
    home.require_identity(source.identify())
    now = None if is_new else LakeOffset.of(home)
    adopted = source.offsets().adopt(now.claim if now else None)
    if now is None:
        require_ready(source, ConnectorSettings(home.lake))
    served = source.offsets().served(adopted.claim)
    assert served.oldest is not None
    oldest, theirs = served.oldest.ordinal, _position(offset, codec)
    if theirs > served.newest.ordinal:
        raise DefiniteError(
            f"the offset is {_format(codec, theirs)}, and the source's own log ends at "
            f"{_format(codec, served.newest.ordinal)}: it is the offset of another server",
            "check the file and the connection string",
        )
    if theirs < oldest:
        notes.append(
            f"the source no longer has the changes between {_format(codec, theirs)} and {_format(codec, oldest)}"
        )
    if offset.get("snapshot") in ("INITIAL", "BLOCKING"):
        notes.append("its snapshot was under way: the stream begins where the source can still send")
        theirs = oldest
    server = str(stored.partition.get("server") or next(iter(stored.partition.values())))
    begin = max(oldest, theirs if now is None else now.log_end)
    effect = _effect(codec, now, adopted, oldest, begin)
    copies = now.followed() if now is not None and effect.copy_again is not None else []
    return Takeover(offset, server, _format(codec, begin), copies, is_new, notes, effect)


def _effect(codec: type[Codec], now: LakeOffset | None, adopted: Adopted, oldest: int, begin: int) -> Effect:
    skip = codec.offset_words.skip
    if now is None:
        return Effect(skip(adopted.claim, SourcePosition(begin)), None, begin, by_windows=True)
    if oldest <= now.log_end and adopted.sends_alike:
        # What the log has is not asked for: a server may refuse to send what is older than the choice of tables there.
        claim = skip(adopted.claim, SourcePosition(now.log_end))
        return Effect(claim, now.claim, leave=adopted.leave, by_windows=True)
    claim = skip(adopted.claim, SourcePosition(begin))
    return Effect(claim, now.claim, begin, REASON, adopted.leave, by_windows=True)


def take_over(
    lake: str | LakeAddress,
    stored: StoredOffset,
    source: Source,
    who: str,
    format: str = "delta",
    version: int | None = None,
) -> OffsetEdit:
    """Make the lake, or the one that is there, continue with another connector's stream. Durable when this returns;
    the next start takes it up. Nothing is changed at the source before that. `version` is as in `editor.apply`."""
    plan(lake, stored, source)
    with locked(LakeHome.create(lake)) as home:
        require_version(home.offsets.version, version)
        # Once more, now that nothing moves.
        return _take_over(home, plan(lake, stored, source), source, who, format)


def _take_over(home: LakeHome, planned: Takeover, source: Source, who: str, format: str) -> OffsetEdit:
    edits = home.offsets.all()
    before = [] if planned.is_new else LakeOffset.of(home).entries()
    after = [{"partition": {"server": planned.server}, "offset": _offset_after(planned, type(source), before)}]
    version = edits[-1].version + 1 if edits else 1
    edit = OffsetEdit(
        version, EditKind.IMPORT, who, time.time_ns() // 1000, before, after, planned.effect, planned.server
    )
    edit = replace(edit, says=planned.says)
    home.offsets.append(edit)
    failpoint("offsets.imported")
    if planned.is_new:
        assert planned.effect.claim is not None
        home.store_source(SourceRecord(dict(source.identify()), dict(planned.effect.claim), format))
    return edit


def _offset_after(planned: Takeover, codec: type[Codec], before: list[dict[str, Any]]) -> dict[str, Any]:
    """A lake that begins has the connector's offset; one that is there keeps its own, or begins again after a gap."""
    position = planned.effect.position
    if planned.is_new:
        return dict(planned.offset)
    if position is None and before:
        return dict(before[0]["offset"])
    return codec.offset_words.emit(LogEnd(position or 0, 0, 0, 0, is_copying=False))


def _understood(stored: StoredOffset, codec: type[Codec]) -> tuple[dict[str, Any], list[str]]:
    """The offset as the newest version writes it. Fields that a later version may have added are passed over."""
    layout = codec.offset_words.layout
    faults = layout.check(stored.partition, stored.offset)
    unknown = {fault.field.removeprefix("offset.") for fault in faults if fault.rule == "known"}
    others = [fault for fault in faults if fault.rule != "known"]
    if others:
        raise OffsetFaultsError(others)
    offset = {name: value for name, value in stored.offset.items() if name not in unknown}
    return upgrade(layout, offset), [f"{name} is not known and passed over" for name in sorted(unknown)]


def _position(offset: Mapping[str, Any], codec: type[Codec]) -> int:
    return next(iter(codec.offset_words.positions(offset).values()))


def _format(codec: type[Codec], ordinal: int) -> str:
    return codec.format(SourcePosition(ordinal))
