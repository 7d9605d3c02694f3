"""What a user can set, with the defaults."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class SyncSettings:
    """One connector: from which database to which lake, and how."""

    dsn: str
    lake: Path
    tables: tuple[str, ...] = ()
    """Patterns such as `public.*`; all tables when empty."""
    exclude: tuple[str, ...] = ()
    slot: str | None = None
    """An existing slot to use; one of our own otherwise."""
    publication: str | None = None
    once: bool = False
    publish_every_seconds: float = 5.0
    batch_bytes_max: int = 256 << 20
    """About how much of the log one batch publishes; at least one transaction."""
    chunk_bytes_max: int = 32 << 20
    log_keep_seconds: float = 24 * 3600.0
    """How long changes stay readable in the log after they have been published."""
    log_quota_bytes: int | None = None
    """How much disk the log may take; at this, nothing more is taken from the source until there is room."""
    log_compression: str | None = None
    """`lz4` or `zstd`."""
    log_segment_bytes_max: int = 256 << 20
    tables_in_parallel: int = 2
