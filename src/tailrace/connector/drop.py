"""Undo what `sync` made in the source: its slot and its publication."""

from __future__ import annotations

from pathlib import Path

from tailrace.connector.home import LakeHome
from tailrace.source.postgres.connection import connect
from tailrace.source.postgres.identity import identify
from tailrace.source.postgres.publication import drop_publication
from tailrace.source.postgres.slot import drop_slot


def drop_source(dsn: str, lake: Path) -> list[str]:
    """Drop what this lake's connector created; says what was done. Others' slots and publications stay."""
    home = LakeHome.find(lake)
    with home.locked(), connect(dsn) as conn, connect(dsn, replication=True) as replication_conn:
        source = home.claim(identify(replication_conn).log_identity, None, None)
        done = []
        for kind, name, owned, drop in (
            ("slot", source.slot, source.owns_slot, drop_slot),
            ("publication", source.publication, source.owns_publication, drop_publication),
        ):
            if not owned:
                done.append(f"{kind} {name} is not ours: left alone")
            elif drop(conn, name):
                done.append(f"{kind} {name} dropped")
            else:
                done.append(f"{kind} {name} was not there")
    return done
