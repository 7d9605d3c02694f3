"""Whether a log can continue where it ends, and how it continues where it cannot."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import replace

from tailrace.errors import GapError
from tailrace.source.door.values import Claim
from tailrace.source.postgres._offsets import stream_end
from tailrace.source.postgres.rows.standby import is_standby
from tailrace.source.postgres.server.connection import connect, explained, session
from tailrace.source.postgres.server.history import History, restarted
from tailrace.source.postgres.server.identity import Identity, identify, require_streaming, wal_position
from tailrace.source.postgres.server.timeline import Read, require_timeline, require_wal
from tailrace.source.postgres.stream.slot import confirmed_lsn, require_continuity


def continued(dsn: str, claim: Claim, end: int | None) -> Claim:
    """The claim to continue with after the ordinal at which the log ends. A `GapError` if the server does not have what
    the log has, or its slot no longer what follows."""
    found = _require_history(dsn, claim, end)
    if end is not None and claim.get("gap_from") != end:
        _require_slot(dsn, claim, end)
    return {**claim, "timeline": found.timeline}


def restart(dsn: str, claim: Claim, end: int) -> Claim:
    """The claim after a gap."""
    with session(dsn) as conn:
        identity, now = require_streaming(conn, dsn), wal_position(conn)
    is_slot = False
    with suppress(GapError):
        _require_history(dsn, claim, end)
        try:
            _require_slot(dsn, claim, end)
        except GapError:
            is_slot = True
    again = restarted(claim, identity.system_identifier, end, now, is_slot=is_slot)
    return {**claim, **again, "timeline": identity.timeline}


def _require_history(dsn: str, claim: Claim, end: int | None) -> Identity:
    with explained(dsn), closing(connect(dsn, replication=True)) as conn:
        with session(dsn) as catalog_conn:
            found = replace(identify(conn), is_standby=is_standby(catalog_conn))
            confirmed = confirmed_lsn(catalog_conn, claim["slot"])
        if end is not None:
            lsn = History.of(claim).lsn(end)
            require_timeline(conn, Read(claim["timeline"], lsn, confirmed), found)
            require_wal(found, lsn)
    return found


def _require_slot(dsn: str, claim: Claim, end: int) -> None:
    with session(dsn) as conn:
        require_continuity(conn, claim["slot"], stream_end(claim, end))
