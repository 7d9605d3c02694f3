"""Lsn: a byte position in the write-ahead log of a Postgres server, perhaps of a later one than a lake began with."""

from __future__ import annotations

import re

HISTORY_BITS = 56
"""A server that writes 1 GB a second needs two years for this many bytes."""
HISTORIES_MAX = 127
_TEXT = re.compile(r"(?:([0-9]{1,3}):)?([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


class Lsn(int):
    """A 64-bit WAL position, written as Postgres writes it: `16/B374D848`. One with the number of a history in front
    (`history`) is written `1:16/B374D848`."""

    @classmethod
    def parse(cls, text: str) -> Lsn:
        match = _TEXT.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"not an LSN: {text!r}")
        history, high, low = match.groups()
        return cls(int(history or 0) << HISTORY_BITS | int(high, 16) << 32 | int(low, 16))

    def __str__(self) -> str:
        history, lsn = divmod(self, 1 << HISTORY_BITS)
        return (f"{history}:" if history else "") + f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"

    def __repr__(self) -> str:
        return f"Lsn({str(self)!r})"
