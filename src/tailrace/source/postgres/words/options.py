"""Postgres on the command line: its options, and what texts for people say of it."""

from __future__ import annotations

import re

from tailrace.errors import DefiniteError
from tailrace.source.door.words import CommandOption

_PRECISION_MAX = 38
_DECIMAL = re.compile(r"(.+)=(\d+),(\d+)", re.DOTALL)
_COPYING = ("sync", "doctor")
_READING = ("sync", "doctor", "verify")


def decimal_choice(given: str) -> str:
    """`PATTERN=38,10` as the source has it: `PATTERN=decimal(38,10)`."""
    choice = _DECIMAL.fullmatch(given)
    if choice is None or not int(choice[3]) <= int(choice[2]) <= _PRECISION_MAX or int(choice[2]) == 0:
        raise DefiniteError(
            f"--as-decimal {given} has no precision and scale",
            "write PATTERN=PRECISION,SCALE, with up to 38 digits in all: public.orders.amount=38,10",
        )
    return f"{choice[1]}=decimal({int(choice[2])},{int(choice[3])})"


OPTIONS = (
    CommandOption(
        "append-only",
        "append.only.tables",
        "Tables without key and replica identity whose rows are only added, as patterns. Repeatable.",
        _READING,
        "PATTERN",
    ),
    CommandOption(
        "as-text",
        "columns.as.text",
        "Columns to copy as text: public.orders.placed_at, *.seats. Repeatable.",
        _READING,
        "PATTERN",
    ),
    CommandOption(
        "as-decimal",
        "columns.as.text",
        "Numerics without precision to copy as decimal(P,S). Repeatable.",
        _READING,
        "PATTERN=P,S",
        item=decimal_choice,
    ),
    CommandOption(
        "generated-columns",
        "columns.generated",
        "Copy generated columns that are stored, too. Needs Postgres 18.",
        _READING,
    ),
    CommandOption("publication", "publication.name", "Use this existing publication.", _COPYING, "NAME"),
    CommandOption("slot", "slot.name", "Use this replication slot; created if missing.", _COPYING, "NAME"),
    CommandOption("failover-slot", "slot.failover", "Make a slot that standbys keep too. Needs Postgres 17.", _COPYING),
    CommandOption(
        "two-phase",
        "stream.two.phase",
        "Log prepared transactions when they are prepared. Needs Postgres 15.",
        _COPYING,
    ),
    CommandOption(
        "origin",
        "stream.origin",
        "none: leave out what the source received by replication itself. Needs Postgres 16.",
        _COPYING,
    ),
    CommandOption("slot", "slot.name", "The connector's slot.name. Default: debezium.", ("import",), "NAME"),
    CommandOption(
        "publication",
        "publication.name",
        "Its publication.name. Default: dbz_publication, or the lake's own.",
        ("import",),
        "NAME",
    ),
    CommandOption("slot", "slot.name", "Drop this slot, and its publication if Tailrace named it.", ("drop",), "NAME"),
)

PHRASES = {
    "name": "Postgres",
    "kind": "postgres",
    "example": "postgresql://user:password@host:5432/database",
    "dsn": "postgresql://postgres@127.0.0.1:5432/shop",
    "position": "an LSN, `16/B374D848`",
    "position_word": "lsn",
    "made": "the slot and the publication",
    "left": "the slot stays in the database and keeps WAL",
    "holds": "the server keeps all WAL since the last `sync`",
    "kept": "keeps WAL for this lake in a slot",
    "adopted": "its slot",
    "adopting": "--slot debezium",
    "continuing": "--slot debezium --publication dbz_publication",
}
