"""Which ends of transactions the log has, and how the others are logged.

A transaction whose commit the log already has is left out, so a server that sends again from an older position adds
nothing. Of one that was logged before its end that is known only then: it is rolled back in the log.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tailrace.errors import GapError
from tailrace.model.commit import Commit
from tailrace.model.kind import Kind
from tailrace.source.postgres.server.history import FIRST, History
from tailrace.source.postgres.server.lsn import Lsn
from tailrace.source.postgres.server.timeline import REPAIR
from tailrace.source.postgres.stream.encoding.records import RecordList
from tailrace.source.postgres.stream.encoding.replay import Replay
from tailrace.source.postgres.values.messages import EndedPrepared, PreparedMessage

_COMMIT_RECORD = struct.Struct(">QQq")


@dataclass(frozen=True)
class Known:
    """What the log has where the stream begins."""

    last_commit_ordinal: int = 0
    prepared: Mapping[int, int] = field(default_factory=dict)
    """Transactions that are prepared, and where."""
    received_ordinal: int = 0
    """Messages that belong to no transaction are in the log up to here."""
    replay: Replay = field(default_factory=Replay)
    history: History = FIRST
    """What ordinals are of. The others here are LSNs of it."""


class Commits:
    """The log's last commit, and the transactions that are prepared and not ended, as LSNs of one history."""

    def __init__(self, known: Known) -> None:
        self.replay = known.replay
        self.history = known.history
        self._last = known.last_commit_ordinal
        self._prepared = dict(known.prepared)

    def is_logged(self, lsn: int) -> bool:
        """The log has the transaction that commits there."""
        return lsn <= self._last

    def is_prepared(self, xid: int, lsn: int) -> bool:
        """The log has this PREPARE."""
        return self._prepared.get(xid) == lsn

    def logged_up_to(self, lsn: int) -> None:
        self._last = lsn

    def commit_whole(self, at: int, xid: int, commit: tuple[int, int, int], records: RecordList) -> None:
        """The end of a transaction that came whole: where it commits, where its commit ends, and when."""
        lsn, end_lsn, time_us = commit
        payload = _COMMIT_RECORD.pack(self.history.ordinal(lsn), self.history.ordinal(end_lsn), time_us)
        records.add(at, xid, Kind.COMMIT, payload)
        self._last = lsn

    def end(self, at: int, xid: int, commit: Commit | None, records: RecordList) -> None:
        """The end of a transaction that was logged before it. What the log has under its commit already is void."""
        if commit is None or self.is_logged(commit.position.ordinal):
            records.add(at, xid, Kind.ROLLBACK)
            return
        position = replace(commit.position, ordinal=self.history.ordinal(commit.position.ordinal))
        logged = Commit(position, self.history.ordinal(commit.end_ordinal))
        records.add(at, xid, Kind.COMMIT, logged.to_bytes())
        self._last = commit.position.ordinal

    def prepare(self, prepared: PreparedMessage, records: RecordList) -> None:
        records.add(prepared.lsn, prepared.xid, Kind.PREPARE, prepared.gid.encode())
        self._prepared[prepared.xid] = prepared.lsn

    def end_prepared(self, at: int, ended: EndedPrepared, records: RecordList) -> None:
        """A `GapError` where the log has not what was prepared, and needs it."""
        commit = ended.commit
        if commit is not None:
            self.replay.committed(commit.position.ordinal, commit.position.time_us)
        if self._prepared.pop(ended.xid, None) is not None:
            self.end(at, ended.xid, commit, records)
        elif commit is not None and not self.is_logged(commit.position.ordinal):
            where = Lsn(commit.position.ordinal)
            raise GapError(
                f"the transaction that was committed at {where} was prepared before, and the log lacks what it changed",
                REPAIR,
            )
