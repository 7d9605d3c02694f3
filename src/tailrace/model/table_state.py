"""The life of a table in a lake: one state, one record, both durable in one file of the lake."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tailrace.model.rows.text_key import TextKey


class TableState(StrEnum):
    """Set by the connector, stored in `tables.json` before it takes effect."""

    PENDING = "pending"
    """Chosen, not copied yet. Next: snapshotting, or errored."""
    SNAPSHOTTING = "snapshotting"
    """Its rows are being copied for the first time. Next: live, or errored. A restart finds it and copies again."""
    LIVE = "live"
    """In every cut; follows the log. Set after the first cut that has it. Next: resyncing, errored or removed."""
    RESYNCING = "resyncing"
    """Waits for or is in a copy that replaces its rows; its last good version stays. Next: live, or errored."""
    ERRORED = "errored"
    """A definite error stopped it; the reason says which. Its last good version stays; cuts, retention and the other
    tables pass over it. Next: resyncing when a person asks for it, or when what the error named has been fixed."""
    REMOVED = "removed"
    """No longer chosen. Its last version stays; nothing follows it. Next: resyncing when it is chosen again."""


COPYING = (TableState.PENDING, TableState.SNAPSHOTTING, TableState.RESYNCING)
"""States from which a copy leads to LIVE."""


@dataclass(frozen=True)
class Ended:
    """How far a copy of a table, or the shape that it had, can be read from the log. Stored."""

    copy: int
    upto: int
    """An ordinal: no look vouches for what committed after it."""
    version: int | None = None
    """The lake's version from which on the copy has its next shape: the table took that at a commit after `upto`, and
    which one is not known. None: the copy was given up."""
    reason: str | None = None


@dataclass(frozen=True)
class TableRecord:
    """What is known of one table. Stored."""

    state: TableState
    reason: str | None = None
    hint: str | None = None
    copy: int = 0
    """How many copies of its rows have been started. To a reader of cuts, each copy is another table."""
    relation: int = 0
    """The source's number for the table that was copied; 0 before."""
    is_refused: bool = False
    """The source's definition of the table caused the error: looked at again at every start."""
    lacks_rows: bool = False
    """Only what changed since it was taken in is there: a change may concern a row that is not."""
    text_key: TextKey | None = None
    """The columns of its key that its copies have as text, if a value of theirs had to be. None: as their types are."""
    definition: Mapping[str, Any] | None = field(default=None, repr=False)
    """The source's definition of the table under which its copy was begun, or to which it has followed since. None
    before."""
    ended: tuple[Ended, ...] = ()
    """Where earlier copies and shapes end, oldest first, as long as a cut that is kept may need it."""
