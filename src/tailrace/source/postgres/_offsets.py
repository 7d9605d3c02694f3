"""Offsets of a Postgres source: an LSN up to which everything has been taken, in Debezium's layout.

A slot sends every transaction whose commit record begins at or after the LSN that it is asked for, and it cannot be
asked for less than its confirmed one. Debezium's `lsn_commit` is the end of a commit record: asked for it, a slot sends
exactly what follows that commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg

from tailrace.errors import DefiniteError
from tailrace.model.position import SourcePosition
from tailrace.source.door.offsets import Adopted, Counted, Served
from tailrace.source.postgres.catalog.publication import require_publication
from tailrace.source.postgres.named_sql import load
from tailrace.source.postgres.server.connection import session
from tailrace.source.postgres.server.history import History
from tailrace.source.postgres.server.identity import require_streaming, wal_position
from tailrace.source.postgres.server.lsn import Lsn
from tailrace.source.postgres.server.timeline import REPAIR
from tailrace.source.postgres.stream.slot import Slot, find_slot, why_lost
from tailrace.source.postgres.values.messages import parse_commit

QUERIES = load("stream/slot.sql")
CHANGES_COUNTED_MAX = 100_000
LOST = "changes that the lake lacks cannot be read any more"
KEEP_ALL = "alter system set max_slot_wal_keep_size = -1; select pg_reload_conf();"
_RISKS = {
    "unreserved": "the slot keeps more WAL than the server allows: the next checkpoint may delete what the lake lacks"
}


def stream_end(claim: Mapping[str, Any], log_end: int) -> Lsn:
    """Where to ask a slot to begin, for a log that ends here."""
    return History.of(claim).lsn(max(log_end, claim.get("skip_to") or 0))


class PostgresOffsets:
    """Implements `SourceOffsets`."""

    def __init__(self, dsn: str, slot: str | None, publication: str | None) -> None:
        self._dsn = dsn
        self._slot = slot
        self._publication = publication

    def served(self, claim: Mapping[str, Any]) -> Served:
        history = History.of(claim)
        with session(self._dsn) as conn:
            slot, end = find_slot(conn, claim["slot"]), wal_position(conn)
            server = f"Postgres {conn.info.parameter_status('server_version')}"
        newest = history.position(end)
        if slot is None or slot.confirmed_flush_lsn is None:
            message = f"there is no slot {claim['slot']}"
            return Served(None, newest, message, {"server": server}, risk=f"{message}: {LOST}", remedy=REPAIR)
        found = {
            "slot": slot.name,
            "confirmed": slot.confirmed_flush_lsn,
            "restart": slot.restart_lsn,
            "wal_status": slot.wal_status,
            "safe_wal_size": slot.safe_wal_size,
            "active_pid": slot.active_pid,
            "publication": claim["publication"],
            "server": server,
        }
        facts = {name: str(value) for name, value in found.items() if value is not None}
        if slot.wal_status == "lost":
            reason, helps = why_lost(slot.invalidation_reason)
            message = f"slot {slot.name} was invalidated: {reason}"
            return Served(None, newest, message, facts, risk=f"{message}; {LOST}", remedy=f"{helps} then {REPAIR}")
        kept = None if slot.restart_lsn is None else history.position(slot.restart_lsn)
        kept_bytes = None if slot.restart_lsn is None else max(0, end - slot.restart_lsn)
        risk = _RISKS.get(slot.wal_status or "")
        remedy = None if risk is None else KEEP_ALL
        oldest = history.position(slot.confirmed_flush_lsn)
        return Served(oldest, newest, _reader(slot), facts, kept, kept_bytes, risk, remedy)

    def count(self, claim: Mapping[str, Any], after: int, upto: SourcePosition) -> Counted | None:
        history = History.of(claim)
        names = [claim["publication"], *([claim["inserts"]] if claim.get("inserts") else [])]
        arguments = {
            "slot": claim["slot"],
            "upto": str(history.lsn(upto.ordinal)),
            "limit": CHANGES_COUNTED_MAX,
            "publications": ", ".join('"' + name.replace('"', '""') + '"' for name in names),
        }
        try:
            with session(self._dsn) as conn:
                row = conn.execute(QUERIES["waiting_commits"], arguments).fetchone()
        except DefiniteError:
            # Another process reads from the slot, or the publication is younger than what waits in it.
            return None
        assert row is not None
        messages, commits = row
        ordinals = [history.ordinal(parse_commit(bytes(each)).position.ordinal) for each in commits or ()]
        return Counted(sum(after < each < upto.ordinal for each in ordinals), messages < CHANGES_COUNTED_MAX)

    def adopt(self, claim: Mapping[str, Any] | None) -> Adopted:
        if self._slot is None or (self._publication is None and claim is None):
            raise DefiniteError("which slot is to be taken over?", "name it, and its publication")
        with session(self._dsn) as conn:
            identity = require_streaming(conn, self._dsn)
            if self._publication is not None:
                require_publication(conn, self._publication)
            _require_idle(conn, self._slot)
        kept = dict(claim or {"owns_publication": False, "inserts": None, "publication": self._publication})
        kept.pop("skip_to", None)
        kept.pop("gap_from", None)
        kept.pop("is_void", None)
        taken = {**kept, "slot": self._slot, "owns_slot": False, "timeline": identity.timeline}
        leave = None
        if claim is not None:
            owns_slot = claim["owns_slot"] and claim["slot"] != self._slot
            leave = {**claim, "owns_slot": owns_slot, "owns_publication": False, "inserts": None}
            is_other = self._publication not in (None, claim["publication"])
            if is_other:
                taken |= {"publication": self._publication, "owns_publication": False, "inserts": None}
                leave |= {"owns_publication": claim["owns_publication"], "inserts": claim.get("inserts")}
            return Adopted(taken, leave, sends_alike=not is_other)
        return Adopted(taken, leave, sends_alike=False)


def _reader(slot: Slot) -> str | None:
    if slot.active_pid is None:
        return None
    return f"slot {slot.name} is being read by process {slot.active_pid} of the server"


def _require_idle(conn: psycopg.Connection, name: str) -> None:
    slot = find_slot(conn, name)
    if slot is None or slot.confirmed_flush_lsn is None:
        raise DefiniteError(f"there is no slot {name}", "name the slot that the connector used with --slot")
    if slot.wal_status == "lost":
        raise DefiniteError(
            f"slot {name} was invalidated: the server removed its WAL", "begin a lake without it: tailrace sync"
        )
    reader = _reader(slot)
    if reader is not None:
        raise DefiniteError(reader, "stop the connector that reads it first")
