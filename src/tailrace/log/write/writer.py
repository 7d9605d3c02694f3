"""The writer: records become durable here, in the order they are appended.

`append` takes records and may write them already, so that the disk works while the writer counts; `flush` writes the
rest and syncs. The sync of the segment is the one point at which records become durable. The index and the head follow
it and can be derived again. So a crash anywhere leaves whole flushes, and at most whole frames of the one under way.

When the disk is full or the quota is reached, `flush` raises `LogBlockedError` and keeps what is buffered. The caller
stops reading from the source and calls `flush` again, which continues as soon as there is space. One thread.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa

from tailrace.errors import DefiniteError
from tailrace.log.disk import AppendFile, Disk
from tailrace.log.frame import Encoder
from tailrace.log.index.head import Head, HeadFile
from tailrace.log.index.index import Derived
from tailrace.log.layout import create_or_check, log_number, segment_path
from tailrace.log.record import conform
from tailrace.log.write._added_records import rollbacks
from tailrace.log.write._next_segment import NextSegment
from tailrace.log.write._options import DEFAULTS, LogBlockedError, LogHeldError, LogOptions
from tailrace.log.write._retention import Need, Retention, SegmentEvent, disk_bytes, wipe
from tailrace.log.write._unsynced import WRITE_AHEAD_BYTES, Unsynced
from tailrace.log.write.ledger import Base, Ledger
from tailrace.log.write.lock import lock_log
from tailrace.log.write.recovery import Recovered, recover
from tailrace.model.position import SourcePosition

__all__ = ["DEFAULTS", "LogBlockedError", "LogHeldError", "LogOptions", "LogWriter"]

_OVERHEAD_BYTES = 4096
"""A frame's metadata and the header of a segment, without details, take less than this."""


class LogWriter:
    """The one writer of a log."""

    def __init__(self, path: Path, options: LogOptions, disk: Disk, clock: Callable[[], int]) -> None:
        """Not for callers: `open` makes one."""
        self.path = path
        self.identity: Mapping[str, str] = {}
        """Which source it is the log of."""
        self.blocked: str | None = None
        """Why the log takes no records at present."""
        self._log = 0
        self._is_interrupted = False
        self._options = options
        self._disk = disk
        self._clock = clock
        self._unsynced = Unsynced()
        self._derived: list[Derived] = []
        self._next: NextSegment | None = None
        self._listeners: list[Callable[[SegmentEvent], None]] = []
        self._lock = lock_log(path)

    @classmethod
    def open(
        cls,
        path: Path,
        identity: Mapping[str, str],
        options: LogOptions = DEFAULTS,
        disk: Disk | None = None,
        clock: Callable[[], int] | None = None,
    ) -> LogWriter:
        """Create the log, or recover it to its last durable flush.

        DefiniteError when another process writes it, when it is another source's, or when it is damaged.
        LogBlockedError when the disk is full; then try again.
        """
        disk = disk or Disk()
        try:
            disk.make_directory(path)
            writer = cls(path, options, disk, clock or (lambda: time.time_ns() // 1000))
        except (FileExistsError, NotADirectoryError, PermissionError) as error:
            raise DefiniteError(f"cannot keep a log in {path}: {error.strerror}", "choose another folder") from error
        except OSError as error:
            raise LogBlockedError(f"cannot open the log in {path}: {error.strerror or error}") from error
        try:
            manifest = create_or_check(path, identity, disk)
            if manifest.wiping or not options.reuse:
                manifest = wipe(path, manifest, disk)
            writer._log = log_number(manifest.id)
            writer.identity = manifest.identity
            writer._start(recover(path, disk, writer._log))
        except PermissionError as error:
            writer._close_all()
            raise DefiniteError(f"cannot write {error.filename or path}: {error.strerror}") from error
        except OSError as error:
            writer._close_all()
            raise LogBlockedError(f"cannot open the log in {path}: {error.strerror or error}") from error
        except BaseException:
            writer._close_all()
            raise
        return writer

    def _start(self, recovered: Recovered | None) -> None:
        if recovered is None:
            self._ledger = Ledger(Base(), strict=True)
            self._durable = Base()
            self._begin_segment(NextSegment.first(self._clock()))
        else:
            self._index = recovered.index
            self._ledger = recovered.ledger
            self._durable = recovered.ledger.base
            self._header = recovered.header
            self._encoder = Encoder(recovered.header.salt, self._options.compression)
            self._segment = AppendFile(self._disk, segment_path(self.path, recovered.position), recovered.size)
            self._segment.rewind(recovered.size)
            self._segment.sync()
            self._durable_bytes = recovered.size
        self._sealed_bytes = disk_bytes(self.path) - self._segment.size - self._index.size
        self._head_file = AppendFile(self._disk, self.path / "head")
        self._publish_head()

    @property
    def options(self) -> LogOptions:
        """How this log is written."""
        return self._options

    @property
    def head(self) -> Head:
        """The end of what is durable."""
        return self._head

    @property
    def last_commit(self) -> SourcePosition:
        """Where the last durable finished transaction committed: resume the source after it."""
        return self._durable.last_commit

    @property
    def received(self) -> SourcePosition:
        """Everything the source sent before this is durable. Its detail is that of the commit or keepalive there."""
        return self._durable.received

    @property
    def active(self) -> Mapping[int, int]:
        """Unfinished transactions, durable or not, and the position at which each began."""
        return {xid: active.first_position for xid, active in self._ledger.active.items()}

    def append(self, batch: pa.RecordBatch) -> None:
        """Take records to be made durable by the next flush.

        ValueError for what is not records or belongs to no transaction; then none of the batch is taken.
        """
        self._require_sound()
        batch = conform(batch)
        if batch.num_rows == 0:
            return
        if self.blocked and self._unsynced.bytes >= self._options.buffer_bytes_max:
            raise LogBlockedError(self.blocked)
        self._unsynced.add(batch)
        try:
            self._write_ahead()
            derived = self._ledger.observe(batch)
        except ValueError:
            self._unsynced.drop_last(self._segment)
            raise
        except BaseException:
            self._is_interrupted = True
            raise
        self._derived.append(derived)

    @property
    def prepared(self) -> Mapping[int, int]:
        """Those of the unfinished transactions that are prepared, and the ordinal of each one's PREPARE."""
        return {xid: each.prepared for xid, each in self._ledger.active.items() if each.prepared is not None}

    def abandon_active(self, void_ordinal: int = 0) -> None:
        """Forget all unfinished transactions, for good: the source will send again those that still matter. It does not
        send again what is prepared: such a transaction stays until its end comes, unless it was prepared up to
        `void_ordinal`, in a history that the source has left."""
        kept = {xid for xid, ordinal in self.prepared.items() if ordinal > void_ordinal}
        forgotten = self._ledger.active.keys() - kept
        if forgotten:
            self.append(rollbacks(sorted(forgotten), self._ledger.base.received.ordinal))

    def flush(self) -> Head:
        """Make everything appended durable and visible to readers.

        LogBlockedError when there is no room: then nothing new is durable, or it is and only readers cannot see it yet.
        """
        with self._writing():
            self._finish_roll()
            self._show()
            if self._unsynced:
                self._require_quota()
                self._write_and_sync()
                self._show()
            if self._is_due_to_roll():
                self._plan_roll()
                self._finish_roll()
        self.blocked = None
        return self._head

    def _show(self) -> None:
        """Let readers see all that is durable."""
        self._segment.mend()
        self._index.drain()
        if self._durable != self._published:
            self._publish_head()

    def roll(self) -> None:
        """Flush, seal the segment and start the next one; an empty one stays."""
        self.flush()
        if not self._is_empty():
            with self._writing():
                self._plan_roll()
                self._finish_roll()

    def retain(self, keep_seconds: float = 0.0) -> list[Path]:
        """Delete the oldest segments as far as no consumer, pin or active transaction needs them.

        Those that held the newest records less than `keep_seconds` ago stay too, and all stay while no consumer has
        registered. Returns the deleted segments. Also seals the segment if it is old enough, so that an idle log
        can be freed of it later.
        """
        with suppress(LogBlockedError):
            if not self._unsynced:
                self.flush()
        return self._free(Retention(self.path, self._disk), int(keep_seconds * 1e6))

    def _free(self, retention: Retention, keep_us: int = 0) -> list[Path]:
        deleted = retention.delete(self._need(), keep_us, self._clock())
        self._sealed_bytes = disk_bytes(self.path) - self._segment.size - self._index.size
        for path in deleted:
            self._notify("deleted", path)
        return deleted

    def listen(self, listener: Callable[[SegmentEvent], None]) -> None:
        """Be told of every segment that is started, sealed or deleted."""
        self._listeners.append(listener)

    def close(self) -> None:
        """Close the files and release the lock. What was not flushed is not durable, and may be gone."""
        with suppress(OSError):
            self._segment.mend()
        self._close_all()

    def _close_all(self) -> None:
        """Close what is open, after a failed start not everything, and release the lock."""
        for name in ("_segment", "_index", "_head_file"):
            if hasattr(self, name):
                getattr(self, name).close()
        self._lock.close()

    def _write_ahead(self) -> None:
        """Write what waits if it is worth a write; where there is no room it waits for the flush, which says why."""
        is_ready = self.blocked is None and self._next is None and self._is_within_quota()
        if is_ready and self._unsynced.bytes_waiting >= WRITE_AHEAD_BYTES:
            start = self._segment.size
            with suppress(OSError):
                self._unsynced.write(self._segment, self._encoder, self._durable.position)
                self._segment.start_write_out(start)

    def _require_quota(self) -> None:
        if self._is_within_quota():
            return
        retention = Retention(self.path, self._disk)
        # A transaction whose end is about to be written holds nothing any more.
        holder = retention.holder(self._need([self._ledger.base.floor]))
        self._free(retention)
        # Where nothing was held and retention has freed all it could, waiting would not help.
        reason = holder.reason if holder else retention.hindrance
        if reason and not self._is_within_quota() and not (self._sealed_bytes == 0 and self._is_empty()):
            quota = self._options.quota_bytes
            self.blocked = f"the log in {self.path} has reached its quota of {quota} bytes: {reason}"
            error = LogHeldError if holder and holder.is_active else LogBlockedError
            raise error(self.blocked, "let it continue, or raise the quota")

    def _need(self, floors: Sequence[int | None] = ()) -> Need:
        """What must not be deleted, whoever has acknowledged it."""
        floors = floors or (self._ledger.base.floor, self._durable.floor, self._index.waiting_from)
        floor = min(each for each in floors if each is not None)
        indexed = self._header.base.seq + self._index.rows
        return Need(indexed, floor if floor < self._durable.position else None, self._header.base.position)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Turn what the disk refuses into LogBlockedError; after any other error the writer refuses to continue."""
        self._require_sound()
        try:
            yield
        except OSError as error:
            self.blocked = f"cannot write {self.path}: {error.strerror or error}"
            is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            hint = "free some space; the log continues by itself" if is_full else "see to the disk; the log tries again"
            raise LogBlockedError(self.blocked, hint) from error
        except LogBlockedError:
            raise
        except BaseException:
            self._is_interrupted = True
            raise

    def _require_sound(self) -> None:
        if self._is_interrupted:
            raise DefiniteError(f"the writer of {self.path} was interrupted", "open the log again")

    def _is_within_quota(self) -> bool:
        quota = self._options.quota_bytes
        if quota is None:
            return True
        index_bytes = sum(derived.transactions.nbytes + derived.lists.nbytes for derived in self._derived)
        # The next segment's header has these two details, as hexadecimal digits.
        header_bytes = 2 * (len(self._durable.received.detail) + len(self._durable.last_commit.detail))
        more_bytes = self._unsynced.bytes_waiting + index_bytes + header_bytes + _OVERHEAD_BYTES
        return self._used_bytes() + more_bytes <= quota

    def _used_bytes(self) -> int:
        return self._sealed_bytes + self._segment.size + self._index.size

    def _write_and_sync(self) -> None:
        """Make all that was appended durable, or leave the segment as it was."""
        unsynced = self._unsynced
        try:
            unsynced.write(self._segment, self._encoder, self._durable.position)
            self._segment.sync()
        except BaseException:
            unsynced.rewind(self._segment, self._durable_bytes)
            raise
        self._durable, self._durable_bytes = self._ledger.base, self._segment.size
        for frame in unsynced.frames:
            self._index.add_frame(*frame)
        for derived in self._derived:
            self._index.add(derived)
        self._unsynced, self._derived = Unsynced(), []

    def _publish_head(self) -> None:
        base = self._durable
        self._head = Head(base.seq, base.received.ordinal, base.position, self._clock())
        self._head_file.overwrite(HeadFile(self._head, self._header.base.position, self._log).to_bytes())
        self._published = base

    def _is_due_to_roll(self) -> bool:
        if self._next is not None or self._is_empty():
            return False
        options = self._options
        # Only sealed segments can be deleted, so the one that is written must not fill the quota.
        bytes_max = min(options.segment_bytes_max, (options.quota_bytes or 1 << 62) // 4)
        age_us = self._clock() - self._header.created_us
        # A clock that was set back would keep the segment open until it has caught up.
        is_old = age_us < 0 or age_us >= options.segment_seconds_max * 1e6
        return self._segment.size >= bytes_max or is_old

    def _is_empty(self) -> bool:
        return self._durable.position <= self._header.base.position + self._header.carried

    def _plan_roll(self) -> None:
        """Decide what the next segment starts with; its positions are taken from here on."""
        self._next = NextSegment.following(self._ledger, self._clock())

    def _finish_roll(self) -> None:
        """Seal the segment and start the next; may fail and be tried again."""
        if self._next is None:
            return
        self._segment.mend()
        self._index.end()
        self._index.drain()
        self._index.sync()
        sealed, sealed_index = self._segment, self._index
        self._begin_segment(self._next)
        self._next = None
        self._sealed_bytes += sealed.size + sealed_index.size
        sealed.close()
        sealed_index.close()
        self._index.drain()
        self._publish_head()
        self._notify("sealed", sealed.path)
        self._notify("started", self._segment.path)

    def _begin_segment(self, following: NextSegment) -> None:
        encoder = Encoder(following.header.salt, self._options.compression)
        self._segment, self._index = following.make(self.path, self._disk, encoder)
        self._encoder, self._durable_bytes = encoder, self._segment.size
        self._header, self._durable = following.header, following.base_after

    def _notify(self, what: str, path: Path) -> None:
        for listener in self._listeners:
            listener(SegmentEvent(what, path))


def give_memory_back() -> None:
    """For a process that does nothing but write: what it no longer needs is the machine's again."""
    pa.set_memory_pool(pa.system_memory_pool())
