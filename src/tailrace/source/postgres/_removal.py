"""What a connector made at the server, removed: by its claim, or by names where the lake with the claim is gone."""

from __future__ import annotations

import re
import secrets

import psycopg

from tailrace.errors import DefiniteError
from tailrace.source.door.stream import Leftovers
from tailrace.source.door.values import Claim
from tailrace.source.postgres.catalog.publication import drop_publication
from tailrace.source.postgres.named_sql import load
from tailrace.source.postgres.rows.standby import is_standby
from tailrace.source.postgres.stream.slot import drop_slot, find_slot

QUERIES = load("catalog/publication.sql") | load("stream/slot.sql")
INSERTS = "_inserts"
_OURS = re.compile(rf"(tailrace_[a-z0-9_]{{1,30}}_[0-9a-f]{{8}})({INSERTS})?")


def new_name(database: str) -> str:
    """For a slot and its publication. `leftovers` knows it again."""
    return f"tailrace_{re.sub('[^a-z0-9_]', '_', database.lower())[:30]}_{secrets.token_hex(4)}"


def drop(conn: psycopg.Connection, claim: Claim) -> list[str]:
    """What the claim owns; says what was done, a line each."""
    named = [("slot", claim["slot"], claim["owns_slot"], drop_slot)]
    named += [("publication", claim["publication"], claim["owns_publication"], drop_publication)]
    named += [("publication", claim.get("inserts"), True, drop_publication)]
    done = []
    for kind, name, is_ours, drop_one in named:
        if name is not None and not is_ours:
            done.append(f"{kind} {name} is not ours: left alone")
        elif name is not None:
            done.append(f"{kind} {name} {'dropped' if drop_one(conn, name) else 'was not there'}")
    return done


def leftovers(conn: psycopg.Connection, name: str | None) -> Leftovers:
    """Slots and publications of this database that have our names, or the one slot that a person names."""
    readers = {str(slot): pid for slot, pid in conn.execute(QUERIES["slots_here"]).fetchall() if _OURS.fullmatch(slot)}
    # A standby can drop its slots; the publications are its primary's.
    found = [] if is_standby(conn) else conn.execute(QUERIES["publication_names"]).fetchall()
    sent = {str(each) for (each,) in found if _OURS.fullmatch(each)}
    if name is not None:
        if find_slot(conn, name) is None and name not in sent:
            ours = ", ".join(sorted(readers)) or "none"
            raise DefiniteError(f"there is no slot {name} in this database", f"slots of tailrace here: {ours}")
        return Leftovers([_claim(name, sent)], [])
    names = {*readers, *(each.removesuffix(INSERTS) for each in sent)}
    in_use = [f"slot {each} is being read (pid {pid}): left alone" for each, pid in sorted(readers.items()) if pid]
    return Leftovers([_claim(each, sent) for each in sorted(names) if readers.get(each) is None], in_use)


def _claim(name: str, sent: set[str]) -> Claim:
    inserts = f"{name}{INSERTS}"
    return {
        "slot": name,
        "owns_slot": True,
        "publication": name if name in sent else None,
        "owns_publication": True,
        "inserts": inserts if inserts in sent else None,
    }
