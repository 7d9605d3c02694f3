"""What is known of a commit: the payload of a COMMIT record and the point a cut stands on."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tailrace.model.lsn import Lsn

_LAYOUT = struct.Struct(">QQq")


@dataclass(frozen=True)
class CommitPayload:
    """Where the commit record lies in the source's log, where it ends, and when it was written."""

    commit_lsn: Lsn
    end_lsn: Lsn
    time_us: int
    """Microseconds since 1970-01-01 UTC."""

    def to_bytes(self) -> bytes:
        return _LAYOUT.pack(self.commit_lsn, self.end_lsn, self.time_us)

    @classmethod
    def from_bytes(cls, payload: bytes) -> CommitPayload:
        commit_lsn, end_lsn, time_us = _LAYOUT.unpack(payload)
        return cls(Lsn(commit_lsn), Lsn(end_lsn), time_us)
