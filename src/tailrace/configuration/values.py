"""Values as people write them: sizes, times, and where Spark works. A kilobyte has 1024 bytes."""

from __future__ import annotations

import re

MASTERS = "local[*], local[N], spark://HOST:PORT, yarn or k8s://URL"

_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt])i?b", re.IGNORECASE)
_SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(s|min|h|d)", re.IGNORECASE)
_HOST = r"(?:\[[0-9a-fA-F:]+\]|[^\s,:/\[\]]+):[0-9]{1,5}"
_MASTER = re.compile(
    rf"local|local\[(?:\*|[1-9][0-9]*)(?:,\s*[0-9]+)?\]|spark://{_HOST}(?:,{_HOST})*|yarn|k8s://\S+",
)


def parse_size(text: str) -> int | None:
    """Bytes of a size such as `512MB` or `1.5GiB`; None for what is none."""
    size = _SIZE.fullmatch(text.strip())
    return None if size is None else int(float(size[1]) * _UNITS[size[2].lower()])


def parse_duration(text: str) -> float | None:
    """Seconds of a time such as `7d`, `12h`, `30min` or `0s`; None for what is none."""
    duration = _DURATION.fullmatch(text.strip())
    return None if duration is None else float(duration[1]) * _SECONDS[duration[2].lower()]


def is_master(text: str) -> bool:
    """Whether Spark would understand it. Whether anything answers there is found out at the start."""
    return _MASTER.fullmatch(text) is not None
