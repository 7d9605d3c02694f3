"""Lsn: a byte position in the write-ahead log of a Postgres server."""

from __future__ import annotations

import re

_TEXT = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


class Lsn(int):
    """A 64-bit WAL position, written as Postgres writes it: `16/B374D848`."""

    @classmethod
    def parse(cls, text: str) -> Lsn:
        match = _TEXT.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"not an LSN: {text!r}")
        high, low = match.groups()
        return cls(int(high, 16) << 32 | int(low, 16))

    def __str__(self) -> str:
        return f"{self >> 32:X}/{self & 0xFFFFFFFF:X}"

    def __repr__(self) -> str:
        return f"Lsn({str(self)!r})"
