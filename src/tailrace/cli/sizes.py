"""Sizes and times as people write and read them. As in Postgres, a kilobyte has 1024 bytes."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from tailrace.errors import DefiniteError

_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt])i?b", re.IGNORECASE)

_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(s|min|h|d)", re.IGNORECASE)


def parse_size(option: str, text: str, bytes_min: int) -> int:
    """Bytes of a size such as `512MB` or `1.5GiB`, given for `option`."""
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise DefiniteError(f"{option} {text!r} is not a size", f"write a number and a unit: {option} 512MB")
    size = int(float(found[1]) * _UNITS[found[2].lower()])
    if size < bytes_min:
        least = f"{bytes_min >> 20}MB"
        raise DefiniteError(f"{option} {text} is too small: it must be {least} or more", f"{option} {least}")
    return size


def parse_duration(option: str, text: str) -> float:
    """Seconds of a time such as `7d`, `12h`, `30min` or `0s`, given for `option`."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise DefiniteError(f"{option} {text!r} is not a time", f"write a number and a unit: {option} 7d")
    return float(found[1]) * _SECONDS[found[2].lower()]


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
