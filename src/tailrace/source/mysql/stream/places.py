"""Places in a server's binlog as ordinals.

    history 7 bits │ number of the file 20 bits │ offset 36 bits

Offsets are counted here, in 64 bits: the server's own have 32, and a transaction may be larger than that. When a
server's binlog begins again, from a backup or after a reset, it gets the next history, so that ordinals still grow.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from tailrace.errors import DefiniteError

_OFFSET_BITS, _FILE_BITS, _HISTORY_BITS = 36, 20, 7
FIRST_OFFSET = 4
"""Of the first event in a file."""
_NAME = re.compile(r"(?P<base>.+)\.(?P<number>\d{6,})")


@dataclass(frozen=True, order=True)
class BinlogPlace:
    """Between two events."""

    history: int
    file: int
    offset: int

    def __post_init__(self) -> None:
        sizes = (self.history, _HISTORY_BITS), (self.file, _FILE_BITS), (self.offset, _OFFSET_BITS)
        if any(not 0 <= value < 1 << bits for value, bits in sizes):
            raise DefiniteError(
                f"the binlog has reached file {self.file}, offset {self.offset}, which is further than can be counted",
                "reset the server's binlogs, and then start a new lake in an empty folder",
            )

    @property
    def ordinal(self) -> int:
        return (self.history << _FILE_BITS | self.file) << _OFFSET_BITS | self.offset

    @classmethod
    def of(cls, ordinal: int) -> BinlogPlace:
        rest, offset = divmod(ordinal, 1 << _OFFSET_BITS)
        history, file = divmod(rest, 1 << _FILE_BITS)
        return cls(history, file, offset)

    def after(self, size: int) -> BinlogPlace:
        """So many bytes further in the same file."""
        return replace(self, offset=self.offset + size)

    def __str__(self) -> str:
        return f"{self.file:06}:{self.offset}"


def file_name(base: str, number: int) -> str:
    """As the server calls its file."""
    return f"{base}.{number:06}"


def file_of(name: str) -> tuple[str, int]:
    """The base and the number of a file's name. A definite error for a name of another form."""
    found = _NAME.fullmatch(name)
    if found is None:
        raise DefiniteError(f"the binlog's file {name!r} has no number", "report it, with the version of the server")
    return found["base"], int(found["number"])
