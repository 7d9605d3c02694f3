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
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pyarrow as pa

from tailrace.errors import DefiniteError
from tailrace.log.files.disk import LogDisk
from tailrace.log.files.layout import create_or_check, log_number
from tailrace.log.files.record import conform
from tailrace.log.index.head import Head
from tailrace.log.ledger.ledger import Base, Ledger
from tailrace.log.write._added_records import rollbacks
from tailrace.log.write._options import DEFAULTS, LogBlockedError, LogHeldError, LogOptions
from tailrace.log.write._room import Room
from tailrace.log.write._segments import Segments
from tailrace.log.write._unsynced import Unsynced
from tailrace.log.write.lock import lock_log
from tailrace.log.write.recovery import recover
from tailrace.log.write.retention import wipe
from tailrace.model.position import SourcePosition
from tailrace.storage.folder_lock import FolderLock

__all__ = ["DEFAULTS", "LogBlockedError", "LogHeldError", "LogOptions", "LogWriter"]


class LogWriter:
    """The one writer of a log."""

    def __init__(
        self,
        identity: Mapping[str, str],
        options: LogOptions,
        segments: Segments,
        ledger: Ledger,
        lock: FolderLock,
    ) -> None:
        """Not for callers: `open` makes one."""
        self.path = segments.path
        self.identity = identity
        """The source that it is the log of."""
        self.options = options
        """How this log is written."""
        self.blocked: str | None = None
        """Why the log takes no records at present."""
        self._segments = segments
        self._ledger = ledger
        self._room = Room(segments, ledger, options.quota_bytes)
        self._unsynced = Unsynced(options.frame_bytes_max)
        self._lock = lock
        self._is_interrupted = False

    @classmethod
    def open(
        cls,
        path: Path,
        identity: Mapping[str, str],
        options: LogOptions = DEFAULTS,
        disk: LogDisk | None = None,
        clock: Callable[[], int] | None = None,
        base: Base | None = None,
    ) -> LogWriter:
        """Create the log, or recover it to its last durable flush. A log that is created has nothing before `base`.

        DefiniteError when another process writes it, when it is another source's, or when it is damaged.
        LogBlockedError when the disk is full; then try again.
        """
        disk, clock = disk or LogDisk(), clock or _now_us
        lock = _lock(path, disk)
        with ExitStack() as on_error, _opening(path):
            on_error.callback(lock.close)
            manifest = create_or_check(path, identity, disk)
            if manifest.wiping or not options.reuse:
                manifest = wipe(path, manifest, disk)
            log = log_number(manifest.id)
            recovered = recover(path, disk, log)
            begin = base or Base()
            segments = Segments(path, disk, options, clock, log, recovered or begin)
            on_error.pop_all()
        ledger = recovered.ledger if recovered else Ledger(begin, strict=True)
        return cls(manifest.identity, options, segments, ledger, lock)

    @property
    def head(self) -> Head:
        """The end of what is durable."""
        return self._segments.head

    @property
    def last_commit(self) -> SourcePosition:
        """Where the last durable finished transaction committed: resume the source after it."""
        return self._segments.open.durable.last_commit

    @property
    def received(self) -> SourcePosition:
        """Everything the source sent before this is durable. Its detail is that of the commit or keepalive there."""
        return self._segments.open.durable.received

    @property
    def is_begun(self) -> bool:
        """Whether the segment that is being written has a finished transaction. It may be the first one."""
        return self.head.seq > self._segments.open.header.base.seq

    @property
    def active(self) -> Mapping[int, int]:
        """Unfinished transactions, durable or not, and the position at which each began."""
        return {xid: active.first_position for xid, active in self._ledger.active.items()}

    @property
    def prepared(self) -> Mapping[int, int]:
        """Those of the unfinished transactions that are prepared, and the ordinal of each one's PREPARE."""
        return {xid: active.prepared for xid, active in self._ledger.active.items() if active.prepared is not None}

    def append(self, batch: pa.RecordBatch) -> None:
        """Take records to be made durable by the next flush.

        ValueError for what is not records or belongs to no transaction; then none of the batch is taken.
        """
        self._require_sound()
        batch = conform(batch)
        if batch.num_rows == 0:
            return
        if self.blocked and self._unsynced.bytes >= self.options.buffer_bytes_max:
            raise LogBlockedError(self.blocked)
        self._unsynced.add(batch)
        try:
            # Before the ledger counts, so that the disk is at work meanwhile.
            if self._is_worth_a_write():
                self._segments.open.write_ahead(self._unsynced)
            self._unsynced.derived.append(self._ledger.observe(batch))
        except ValueError:
            self._segments.open.take_back(self._unsynced)
            raise
        except BaseException:
            self._is_interrupted = True
            raise

    def abandon_active(self, void_ordinal: int = 0) -> None:
        """Forget all unfinished transactions, for good: the source will send again those that still matter.

        It does not send again what is prepared: such a transaction stays until its end comes, unless it was prepared up
        to `void_ordinal`, in a history that the source has left.
        """
        kept = {xid for xid, ordinal in self.prepared.items() if ordinal > void_ordinal}
        forgotten = self._ledger.active.keys() - kept
        if forgotten:
            self.append(rollbacks(sorted(forgotten), self._ledger.base.received.ordinal))

    def flush(self) -> Head:
        """Make everything appended durable and visible to readers.

        LogBlockedError when there is no room: then nothing new is durable, or it is and only readers cannot see it yet.
        """
        with self._writing():
            self._segments.finish_roll()
            self._segments.show()
            if self._unsynced:
                self._room.require(self._unsynced)
                self._segments.open.write_and_sync(self._unsynced, self._ledger.base)
                self._unsynced = Unsynced(self._unsynced.frame_bytes_max)
                self._segments.show()
            if self._segments.is_due_to_roll():
                self._segments.roll(self._ledger)
        self.blocked = None
        return self.head

    def roll(self) -> None:
        """Flush, seal the segment and start the next one; an empty one stays."""
        self.flush()
        if not self._segments.open.is_empty:
            with self._writing():
                self._segments.roll(self._ledger)

    def retain(self, keep_seconds: float = 0.0) -> list[Path]:
        """Delete the oldest segments as far as no consumer, pin or active transaction needs them.

        Those that held the newest records less than `keep_seconds` ago stay too, and all stay while no consumer has
        registered. Returns the deleted segments. Also seals the segment if it is old enough, so that an idle log
        can be freed of it later.
        """
        with suppress(LogBlockedError):
            if not self._unsynced:
                self.flush()
        return self._room.free(int(keep_seconds * 1e6))

    def close(self) -> None:
        """Close the files and release the lock. What was not flushed is not durable, and may be gone."""
        with suppress(OSError):
            self._segments.open.mend()
        self._segments.close()
        self._lock.close()

    def _is_worth_a_write(self) -> bool:
        is_enough = self._unsynced.bytes_waiting >= self.options.write_ahead_bytes
        is_ready = self.blocked is None and not self._segments.is_rolling
        return is_enough and is_ready and self._room.is_there_for(self._unsynced)

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
        except LogBlockedError as error:
            self.blocked = error.message
            raise
        except BaseException:
            self._is_interrupted = True
            raise

    def _require_sound(self) -> None:
        if self._is_interrupted:
            raise DefiniteError(f"the writer of {self.path} was interrupted", "open the log again")


def give_memory_back() -> None:
    """For a process that does nothing but write: what it no longer needs is the machine's again."""
    pa.set_memory_pool(pa.system_memory_pool())


def _lock(path: Path, disk: LogDisk) -> FolderLock:
    """The lock of the log in this folder, which is made if it is not there."""
    try:
        disk.make_directory(path)
        return lock_log(path)
    except (FileExistsError, NotADirectoryError, PermissionError) as error:
        raise DefiniteError(f"cannot keep a log in {path}: {error.strerror}", "choose another folder") from error
    except OSError as error:
        raise LogBlockedError(f"cannot open the log in {path}: {error.strerror or error}") from error


@contextmanager
def _opening(path: Path) -> Iterator[None]:
    """Turn what the disk refuses into errors of ours."""
    try:
        yield
    except PermissionError as error:
        raise DefiniteError(f"cannot write {error.filename or path}: {error.strerror}") from error
    except OSError as error:
        raise LogBlockedError(f"cannot open the log in {path}: {error.strerror or error}") from error


def _now_us() -> int:
    return time.time_ns() // 1000
