"""PostgresStream: the changes of a Postgres database, from a slot through publications into the log.

A claim names the one slot and the one publication of a lake, says which of them are ours to remove, and on which
timeline the server was. What is left in the database after a crash: the slot and the publication, both named by the
stored claim.
"""

from __future__ import annotations

from collections.abc import Sequence

from tailrace.errors import TransientError
from tailrace.log.write.writer import LogWriter
from tailrace.model.position import SourcePosition
from tailrace.model.table import TableId
from tailrace.source.door.control import CaptureControl
from tailrace.source.door.stream import Leftovers, Prepared
from tailrace.source.door.values import Claim, Retained, Waiting, wait_in_silence
from tailrace.source.postgres._claims import require_names, require_signals, require_usable
from tailrace.source.postgres._continuity import continued, restart
from tailrace.source.postgres._offsets import PostgresOffsets
from tailrace.source.postgres._reached import Options, ReachedDatabase
from tailrace.source.postgres._removal import INSERTS, drop, leftovers, new_name
from tailrace.source.postgres.catalog.publication import PublicationKind, publications, publish, sent_tables
from tailrace.source.postgres.server import address
from tailrace.source.postgres.server.connection import one_state, session
from tailrace.source.postgres.server.history import History
from tailrace.source.postgres.server.identity import reached_soon, wal_position
from tailrace.source.postgres.server.lock_waits import Waiter
from tailrace.source.postgres.stream import capture
from tailrace.source.postgres.stream.slot import create_slot, drop_slot, find_ready_slot, require_slot, retained


class PostgresStream(ReachedDatabase):
    """The part `Stream` of the door."""

    _history: History
    """`claim` and `restart` say which."""

    def __init__(self, options: Options) -> None:
        super().__init__(options)
        self._bridged: int | None = None
        """The gap for which the slot was made again."""

    def reserved(self) -> frozenset[str]:
        slot = self._options.slot
        return frozenset(f"slot {slot} at {server}" for server in address.servers(self._options.dsn) if slot)

    def claim(self, stored: Claim | None) -> Claim:
        options, identity = self._options, self._identity()
        is_append_only = bool(options.append_only)
        if stored is not None:
            self._history = History.of(stored)
            require_names(stored, options.slot, options.publication, needs_inserts=is_append_only)
            self._require_signals(stored)
            return stored
        with session(options.dsn) as conn:
            require_usable(conn, options.slot, options.publication, needs_inserts=is_append_only)
        name = new_name(identity.database)
        needs_inserts = (is_append_only or self._signals is not None) and options.publication is None
        claim = {
            "slot": options.slot or name,
            "publication": options.publication or name,
            "owns_slot": options.slot is None,
            "owns_publication": options.publication is None,
            "inserts": f"{name}{INSERTS}" if needs_inserts else None,
            "timeline": identity.timeline,
            "system": identity.system_identifier,
        }
        self._require_signals(claim)
        return claim

    def unsent(self, claim: Claim, tables: Sequence[TableId]) -> set[TableId]:
        with session(self._options.dsn) as conn, one_state(conn):
            return set(tables) - sent_tables(conn, claim, self._find(conn, tables))

    def prepare(
        self,
        claim: Claim,
        tables: Sequence[TableId],
        resume: SourcePosition | None,
        waiting: Waiting = wait_in_silence,
        *,
        keeps_others: bool = False,
    ) -> Prepared:
        slot = claim["slot"]
        done = []
        waiter = Waiter(self._kept, waiting)
        with session(self._options.dsn) as conn:
            if resume is not None and claim.get("gap_from") == resume.ordinal:
                # What the slot has not sent us is lost anyway. Once: then capture reads from the next one.
                if self._bridged != resume.ordinal and claim["owns_slot"] and drop_slot(conn, slot):
                    done.append(f"slot {slot}, which had lost changes, dropped")
                self._bridged = resume.ordinal
            elif resume is not None:
                # What another process may have read from it is for capture to find out, which knows the log's end.
                require_slot(conn, slot, History.of(claim).lsn(resume.ordinal))
            infos = self._find(conn, tables)
            if self._signals is not None and self._signals.table not in tables:
                infos += self._signals.found(conn)
                tables = [*tables, *(info.table for info in infos if info.table == self._signals.table)]
            kind = PublicationKind(generated=self._options.generated, keeps_others=keeps_others)
            published, refused = publish(conn, claim, tables, infos, waiter, kind)
            done += published
            # After the publication: what the slot holds is sent as the publication was at that point.
            if find_ready_slot(conn, slot, is_ours=claim["owns_slot"]) is None:
                made = create_slot(self._options.dsn, slot, waiter, failover=self._options.stream.failover)
                done.append(f"slot {slot} holds the WAL from {made} on")
        return Prepared(done, refused)

    def require_continuity(self, claim: Claim, end: SourcePosition | None) -> Claim:
        return continued(self._options.dsn, claim, None if end is None else end.ordinal)

    def restart(self, claim: Claim, end: SourcePosition) -> Claim:
        again = restart(self._options.dsn, claim, end.ordinal)
        self._history = History.of(again)
        return again

    def drop(self, claim: Claim) -> list[str]:
        with session(self._options.dsn) as conn:
            return drop(conn, claim)

    def leftovers(self, name: str | None = None) -> Leftovers:
        with session(self._options.dsn) as conn:
            return leftovers(conn, name)

    def capture(self, claim: Claim, log: LogWriter, control: CaptureControl) -> None:
        names = claim["slot"], publications(claim), claim["timeline"], History.of(claim), claim.get("skip_to") or 0
        stream = capture.SlotStream(self._options.dsn, *names, tuple(self._options.as_text), self._options.stream)
        capture.run(stream, log, control)

    def offsets(self) -> PostgresOffsets:
        return PostgresOffsets(self._options.dsn, self._options.slot, self._options.publication)

    def now(self) -> SourcePosition:
        return self._history.position(self._kept.ask(reached_soon))

    def lag_bytes(self, ordinal: int) -> int | None:
        try:
            return max(0, self._history.position(self._kept.ask(wal_position)).ordinal - ordinal)
        except TransientError:
            return None

    def retained(self, claim: Claim) -> Retained | None:
        try:
            return self._kept.ask(lambda conn: retained(conn, claim["slot"]))
        except TransientError:
            return None

    def _require_signals(self, claim: Claim) -> None:
        if self._signals is not None:
            with session(self._options.dsn) as conn:
                require_signals(conn, claim, self._signals, self._watermarks)
