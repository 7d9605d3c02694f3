"""Sizes and times as people write them. As in Postgres, a kilobyte has 1024 bytes."""

from __future__ import annotations

import re

from tailrace.errors import DefiniteError

LOG_QUOTA_BYTES_MIN = 64 << 20
LOG_SEGMENT_BYTES_MIN = 1 << 20

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
