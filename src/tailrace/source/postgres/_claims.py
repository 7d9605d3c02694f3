"""What a lake's claim says, and whether it still fits the names that a person has given."""

from __future__ import annotations

import psycopg

from tailrace.errors import DefiniteError
from tailrace.source.door.values import Claim
from tailrace.source.postgres.catalog.publication import MAKE_PUBLICATION, require_publication
from tailrace.source.postgres.catalog.signal_table import SignalTable
from tailrace.source.postgres.rows.standby import is_standby
from tailrace.source.postgres.rows.watermarks import Watermarks
from tailrace.source.postgres.stream.slot import find_slot, require_slot_name


def require_names(stored: Claim, slot: str | None, publication: str | None, *, needs_inserts: bool) -> None:
    """A definite error where a person names other things than the claim does."""
    if needs_inserts and not stored.get("inserts"):
        # What the slot holds from before a publication was made cannot be read through it.
        message = "this lake was begun without --append-only, and its slot cannot send other tables now"
        raise DefiniteError(message, "leave out --append-only, or begin another lake with it")
    for kind, given in (("slot", slot), ("publication", publication)):
        if given is not None and given != stored[kind]:
            raise DefiniteError(f"this lake uses {kind} {stored[kind]}, not {given}", f"leave out --{kind}")


def require_usable(conn: psycopg.Connection, slot: str | None, publication: str | None, *, needs_inserts: bool) -> None:
    """What a person named must be usable, before a lake is bound to it. On a standby the publication must be named."""
    if publication is None and is_standby(conn):
        message = "the server is a standby, on which no publication can be made"
        raise DefiniteError(message, f"on its primary: {MAKE_PUBLICATION} then name it with --publication tailrace")
    if publication is not None and needs_inserts:
        message = f"--append-only needs a publication of its own beside {publication}"
        raise DefiniteError(message, "leave out --publication, or --append-only")
    if publication is not None:
        require_publication(conn, publication)
    if slot is not None:
        require_slot_name(slot)
        find_slot(conn, slot)


def require_signals(conn: psycopg.Connection, claim: Claim, signals: SignalTable, watermarks: Watermarks) -> None:
    """Asked at every start. Later, a signal table that is gone sends no signals, and the copy continues."""
    theirs = None if claim["owns_publication"] else claim["publication"]
    problem = signals.problem(conn, theirs, can_send_inserts=claim.get("inserts") is not None)
    problem = problem or watermarks.problem(conn)
    if problem is not None:
        raise DefiniteError(problem.message, problem.hint)
