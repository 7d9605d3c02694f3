"""How a log is written, and how it says that it cannot be written at present."""

from __future__ import annotations

from dataclasses import dataclass

from tailrace.errors import TransientError
from tailrace.log.files.record import FRAME_BYTES_MAX


@dataclass(frozen=True)
class LogOptions:
    """How a log is written."""

    segment_bytes_max: int = 256 << 20
    """A segment that has reached this size is sealed at the end of the flush."""
    segment_seconds_max: float = 3600.0
    """So is one of this age, so that retention can free it."""
    quota_bytes: int | None = None
    """At this size on disk, index included, a flush is refused until retention has freed space. It is taken anyway
    where waiting would never end: when the log is empty, or when consumers have read everything and no pin or active
    transaction holds anything."""
    buffer_bytes_max: int = 64 << 20
    """`append` refuses more than this while the log is blocked."""
    write_ahead_bytes: int = 256 << 10
    """Appended records are written when they are this many bytes. Fewer wait for the flush, to share a frame."""
    frame_bytes_max: int = FRAME_BYTES_MAX
    """About as much as a frame takes; one record may be larger."""
    compression: str | None = None
    """`lz4` or `zstd`."""
    reuse: bool = True
    """False wipes what is there when the log is opened: the source is read again from its own offset."""


DEFAULTS = LogOptions()


class LogBlockedError(TransientError):
    """There is no room. Nothing is lost; `flush` again when there is."""


class LogHeldError(LogBlockedError):
    """Only unfinished transactions hold what is there. Waiting for room would be waiting for their end."""
