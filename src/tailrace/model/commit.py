"""Commit: what is known of a commit, and the payload of a COMMIT record."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tailrace.model.position import SourcePosition

_LAYOUT = struct.Struct(">QQq")


@dataclass(frozen=True)
class Commit:
    """Where a transaction's commit stands in the source's history, and where it ends there."""

    position: SourcePosition
    end_ordinal: int
    """The source can resume after the transaction from here on."""

    def to_bytes(self) -> bytes:
        head = _LAYOUT.pack(self.position.ordinal, self.end_ordinal, self.position.time_us)
        return head + self.position.detail

    @classmethod
    def from_bytes(cls, payload: bytes) -> Commit:
        """ValueError for a payload that is too short."""
        if len(payload) < _LAYOUT.size:
            raise ValueError("a COMMIT without a commit payload")
        ordinal, end_ordinal, time_us = _LAYOUT.unpack_from(payload)
        return cls(SourcePosition(ordinal, time_us, payload[_LAYOUT.size :]), end_ordinal)
