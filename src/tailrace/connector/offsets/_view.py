"""A lake's offset at one moment, seen from outside: what is known of it before it is edited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tailrace.connector.status import stored_growths
from tailrace.lake.home import LakeHome, SourceRecord
from tailrace.lake.records.offset_history import EditKind, EditState, Effect, OffsetEdit
from tailrace.log.reader import LogReader
from tailrace.model.position import SourcePosition
from tailrace.model.table_state import COPYING, TableState
from tailrace.offsets import attributes
from tailrace.offsets.attributes import Collection, emit_collections
from tailrace.offsets.java import texts_to_hex
from tailrace.source.door.offsets import LogEnd, OffsetWords
from tailrace.source.kinds import codec_of


@dataclass(frozen=True)
class LakeOffset:
    """What files of the lake say. Reading them is always safe, whether or not a connector runs."""

    home: LakeHome
    record: SourceRecord
    edits: list[OffsetEdit]
    reader: LogReader | None
    given_server: str | None = None

    @classmethod
    def of(cls, home: LakeHome, server: str | None = None) -> LakeOffset:
        record = home.source()
        assert record is not None
        reader = LogReader(home.log) if home.has_log else None
        return cls(home, record, home.offsets.all(), reader, server)

    @property
    def words(self) -> OffsetWords:
        return codec_of(self.record.kind).offset_words

    @property
    def version(self) -> int:
        return self.edits[-1].version if self.edits else 0

    @property
    def server(self) -> str:
        """The name of the partition: the one that was asked for, the one that was imported, or the database's."""
        imported = [e.server for e in self.edits if e.server is not None and e.state is not EditState.UNDONE]
        return self.given_server or (imported[-1] if imported else self.record.identity["database"])

    @property
    def log_end(self) -> int:
        return self.reader.head.ordinal if self.reader is not None else 0

    @property
    def claim(self) -> Any:
        """As the next start will have it."""
        claims = [e.effect.claim for e in self.edits if e.state is EditState.WAITING and e.effect.claim is not None]
        return claims[-1] if claims else self.record.claim

    def entries(self) -> list[dict[str, Any]]:
        """The offset as the next start will find it: an edit that has not had its effect yet shows already."""
        counting = [e for e in self.edits if e.state is not EditState.UNDONE and e.effect != Effect()]
        newest = counting[-1] if counting else None
        if newest is not None and self._is_ahead(newest):
            # By the name that this reader knows the partition by: what is shown can be sent back.
            return [{"partition": {"server": self.server}, "offset": each["offset"]} for each in newest.after]
        found = self.logged()
        return [] if found is None else [{"partition": {"server": self.server}, "offset": found}]

    def _is_ahead(self, edit: OffsetEdit) -> bool:
        return edit.state is EditState.WAITING or (edit.effect.position or 0) > self.log_end

    def logged(self) -> dict[str, Any] | None:
        """What the log says, in the words of the source; None before anything was logged."""
        end = self.end()
        return None if end is None else self.words.emit(end) | self._growing()

    def end(self) -> LogEnd | None:
        if self.reader is None or not self.log_end:
            return None
        is_copying = self.home.cuts.newest() is None and bool(self.tables(*COPYING))
        head = self.reader.head
        if self.reader.oldest_seq > head.seq:
            # None was logged yet, or what was has been deleted.
            return LogEnd(head.ordinal, 0, 0, 0, is_copying)
        (last,) = self.reader.transactions(head.seq - 1, head.seq).to_pylist()
        return LogEnd(head.ordinal, last["end_ordinal"], last["xid"], last["commit_time_us"], is_copying)

    def last_taken(self) -> int:
        """No commit up to this ordinal is still to be logged."""
        if self.reader is None:
            return 0
        return max(self.reader.position_of(self.reader.head.seq).ordinal, self.log_end - 1)

    def logged_since(self, ordinal: int) -> int:
        """How many logged transactions committed at or after this."""
        if self.reader is None:
            return 0
        return self.reader.head.seq - self.reader.seq_at(ordinal - 1)

    def shown(self, ordinal: int) -> str:
        return codec_of(self.record.kind).format(SourcePosition(ordinal))

    def tables(self, *states: TableState) -> list[str]:
        return sorted(str(t) for t, record in self.home.tables.load().items() if record.state in states)

    def followed(self) -> list[str]:
        """Tables that have to be copied again when changes are skipped."""
        return self.tables(TableState.LIVE, *COPYING)

    def positions(self) -> dict[str, str]:
        """For a person: where the log ends, and the commit that the lake's tables show."""
        cut = self.home.cuts.newest()
        found = {"log": self.shown(self.log_end)}
        return found if cut is None else {**found, "lake": self.shown(cut.position.ordinal)}

    def _growing(self) -> dict[str, Any]:
        """Attributes of copies by windows that are under way, in the layout of an incremental snapshot."""
        copying = {t: r for t, r in sorted(self.home.tables.load().items()) if r.state in COPYING}
        growths = list(stored_growths(self.home, copying))
        if not growths:
            return {}
        collections = tuple(
            Collection(str(table), growth.condition, growth.order[0] if growth.order else None)
            for table, growth in growths
        )
        first = growths[0][1]
        return {
            attributes.COLLECTIONS: emit_collections(collections),
            attributes.PRIMARY_KEY: texts_to_hex(None if first.done is None else list(first.done)),
            attributes.MAXIMUM_KEY: texts_to_hex(None if first.last is None else list(first.last)),
        }

    def unreached(self) -> OffsetEdit | None:
        """The newest edit that skips something which the log has not got beyond yet."""
        edits = [e for e in self.edits if e.state is not EditState.UNDONE and e.effect.claim is not None]
        return edits[-1] if edits and (edits[-1].effect.position or 0) > self.log_end else None

    def last_edit(self) -> OffsetEdit | None:
        """The newest that an undo would take back."""
        edits = [e for e in self.edits if e.kind is not EditKind.UNDO and e.state is not EditState.UNDONE]
        return edits[-1] if edits else None
