"""Kind: what a record of the log is."""

from __future__ import annotations

from enum import IntEnum


class Kind(IntEnum):
    """One byte in every log record. The numbers are on disk: never reuse one.

    Control kinds (below 16) steer the log itself and their payload is ours. All other
    payloads are the source's bytes, untouched, except SCHEMA, which is a `TableSchema` as JSON.
    """

    BEGIN = 1
    """Registers transaction `xid`. Payload empty. A BEGIN for an xid that is already active
    starts it again: what was logged for it before is forgotten, because the source sends it again."""
    COMMIT = 2
    """Finishes transaction `xid`. Payload: a `Commit`."""
    ROLLBACK = 3
    """Forgets transaction `xid`."""
    ROLLBACK_SUB = 4
    """Forgets what sub-transaction `sub_xid` of `xid` changed."""
    UNDO = 5
    """Forgets the newest change of (`xid`, `sub_xid`, `relation`) that is not yet undone."""
    KEEPALIVE = 6
    """No change: says that everything before `ordinal` has been received. Payload: the position's detail."""
    PREPARE = 8
    """Transaction `xid` is prepared: of it the source will send only its end. Payload: the source's name for it."""
    SHAPE = 9
    """Replaces what the SCHEMA of the same `xid`, `relation` and `ordinal` says: in a transaction that is logged before
    it commits, a shape can be told in full only at its end."""

    SCHEMA = 16
    """From here on, records of `relation` have this shape."""
    MESSAGE = 17
    """A logical message."""

    INSERT = 32
    UPDATE = 33
    DELETE = 34
    TRUNCATE = 35
    UNSENT = 36
    """The source could not send what transaction `xid` did to rows of `relation`. Payload: why, as text. A copy that
    lacks the transaction can only be made again."""

    LOB_LOCATOR = 48
    LOB_WRITE = 49
    LOB_ERASE = 50
    XML_BEGIN = 51
    XML_WRITE = 52
    XML_END = 53
