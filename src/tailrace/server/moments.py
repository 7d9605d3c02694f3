"""Times as the API shows them: UTC, always with the zone."""

from __future__ import annotations

from datetime import UTC, datetime

from tailrace.server.errors import RequestError


def moment(time_us: int) -> datetime:
    """Of microseconds since 1970."""
    return datetime.fromtimestamp(time_us / 1e6, UTC)


def moment_text(time_us: int) -> str:
    """The same as text, for JSON that pydantic does not write."""
    return moment(time_us).isoformat(timespec="microseconds").replace("+00:00", "Z")


def microseconds(time: datetime, name: str) -> int:
    """Since 1970, of a time that was asked for."""
    require_zone(time, name)
    return round(time.timestamp() * 1e6)


def require_zone(time: datetime, name: str) -> None:
    """A request error for a time without a zone: it may mean any hour."""
    if time.tzinfo is None:
        raise RequestError(f"{name} has no time zone", "write it as 2026-11-19T06:20:00Z")
