"""Sizes and times as people read them. A kilobyte has 1024 bytes."""

from __future__ import annotations

from datetime import UTC, datetime


def size_text(count: float) -> str:
    """`812 B`, `1.5 MiB`."""
    if count < 1024:
        return f"{count:,.0f} B"
    for unit in ("KiB", "MiB", "GiB"):
        count /= 1024
        if count < 1024:
            return f"{count:,.1f} {unit}"
    return f"{count / 1024:,.1f} TiB"


def time_text(time_us: int, exact_to: str = "seconds") -> str:
    """ISO 8601 in UTC: `2026-11-15T23:18:58Z`."""
    try:
        time = datetime.fromtimestamp(time_us // 1_000_000, tz=UTC).replace(tzinfo=None)
        return f"{time.isoformat(timespec=exact_to)}Z"
    except (ValueError, OverflowError, OSError):
        return f"{time_us:,} µs since 1970"
